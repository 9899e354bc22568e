"""Writes allocation candidates as JSON bytes, each part once.

An answer can hold tens of thousands of candidates made of few parts. So a provider's share in a
candidate is encoded once per answer, a tree's summaries once per change of the tree, and what is
left per candidate is joining bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson

from dovetail.engine import Search, Snapshot
from dovetail.engine.combine import Combination
from dovetail.engine.feasible import Slot
from dovetail.rest.http import Version

KEPT_BYTES = 64 * 2**20
"""Summaries of trees kept for the next answer."""


def quoted(text: str) -> bytes:
    return orjson.dumps(text)


class CandidateWriter:
    """Joins the parts of one answer."""

    def __init__(self, search: Search, version: Version) -> None:
        self._snapshot, self._slots, self._version = search.snapshot, search.slots, version
        self._giving = [at for at, slot in enumerate(self._slots) if slot.resources]
        self._uuids: dict[int, bytes] = {}
        self._shares: dict[tuple[int, tuple[int, ...]], bytes] = {}
        self._single: list[dict[int, bytes]] = [{} for _ in self._slots]
        self._mapped: list[dict[int, bytes]] = [{} for _ in self._slots]
        self._unsuffixed = [at for at, slot in enumerate(self._slots) if not slot.group.suffix]
        self._suffixed = [at for at, slot in enumerate(self._slots) if slot.group.suffix]

    def requests(self, combinations: Iterable[Combination]) -> bytes:
        return b"[" + b",".join(map(self._request, combinations)) + b"]"

    def _request(self, rows: Combination) -> bytes:
        opening, closing = (b"{", b"}") if self._version >= 12 else (b"[", b"]")
        allocations = b",".join(self._allocations(rows))
        parts = [b'{"allocations":', opening, allocations, closing]
        if self._version >= 34:
            parts += [b',"mappings":{', b",".join(self._mappings(rows)), b"}"]
        parts.append(b"}")
        return b"".join(parts)

    def _allocations(self, rows: Combination) -> list[bytes]:
        giving = self._giving
        if len({rows[at] for at in giving}) == len(giving):
            # Each slot on a row of its own: the common case, and the fast one.
            shares = []
            for at in giving:
                row = rows[at]
                share = self._single[at].get(row)
                if share is None:
                    share = self._single[at][row] = self._share(row, (at,))
                shares.append(share)
            return shares
        by_row: dict[int, tuple[int, ...]] = {}
        for at in giving:
            by_row[rows[at]] = (*by_row.get(rows[at], ()), at)
        return [self._combined(row, slots) for row, slots in by_row.items()]

    def _combined(self, row: int, slots: tuple[int, ...]) -> bytes:
        share = self._shares.get((row, slots))
        if share is None:
            share = self._shares[row, slots] = self._share(row, slots)
        return share

    def _share(self, row: int, slots: Sequence[int]) -> bytes:
        """What a provider gives to the slots together."""
        amounts: dict[str, int] = {}
        for at in slots:
            for name, amount in self._slots[at].resources.items():
                amounts[name] = amounts.get(name, 0) + amount
        resources = b'"resources":' + orjson.dumps(amounts)
        if self._version >= 12:
            return self._uuid(row) + b":{" + resources + b"}"
        return b'{"resource_provider":{"uuid":' + self._uuid(row) + b"}," + resources + b"}"

    def _mappings(self, rows: Combination) -> list[bytes]:
        mapped = []
        for at in self._suffixed:
            row = rows[at]
            item = self._mapped[at].get(row)
            if item is None:
                suffix = quoted(self._slots[at].group.suffix)
                item = self._mapped[at][row] = suffix + b":[" + self._uuid(row) + b"]"
            mapped.append(item)
        if self._unsuffixed:
            distinct = dict.fromkeys(rows[at] for at in self._unsuffixed)
            mapped.append(b'"":[' + b",".join(map(self._uuid, distinct)) + b"]")
        return mapped

    def _uuid(self, row: int) -> bytes:
        found = self._uuids.get(row)
        if found is None:
            found = self._uuids[row] = b'"%s"' % self._snapshot.uuid(row).encode()
        return found


class SummaryWriter:
    """Summaries of providers, remembered per tree until the tree changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[tuple[int, int], bytes]] = OrderedDict()
        self._size = 0

    def summaries(
        self,
        snapshot: Snapshot,
        slots: Sequence[Slot],
        combinations: Iterable[Combination],
        version: Version,
    ) -> bytes:
        """The providers of every tree that gives something; before 1.29 only those that give."""
        giving = [at for at, slot in enumerate(slots) if slot.resources]
        rows = sorted({rows[at] for rows in combinations for at in giving})
        if version < 29:
            asked = {name for slot in slots for name in slot.resources}
            found = [providers_json(snapshot, range(row, row + 1), version, asked) for row in rows]
        else:
            trees = sorted(set(snapshot.tree.values[rows].tolist())) if rows else []
            found = [self._tree(snapshot, tree) for tree in trees]
        return b"{" + b",".join(found) + b"}"

    def _tree(self, snapshot: Snapshot, tree: int) -> bytes:
        root = int(snapshot.tree_root_id.values[tree])
        change = (snapshot.names_version, int(snapshot.tree_version.values[tree]))
        kept = self._kept.get(root)
        if kept is not None and kept[0] == change:
            return kept[1]
        text = providers_json(snapshot, snapshot.rows_of(tree), 29)
        self._size += len(text) - (len(kept[1]) if kept else 0)
        self._kept[root] = (change, text)
        self._kept.move_to_end(root)
        while self._size > KEPT_BYTES:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= len(dropped)
        return text


def providers_json(
    snapshot: Snapshot, rows: range, version: Version, asked: set[str] | None = None
) -> bytes:
    """The summaries of neighbouring rows; before 1.27 only the classes `asked` for are shown."""
    resources: dict[int, dict[str, dict[str, int]]] = {row: {} for row in rows}
    for class_id, stock in snapshot.stocks.items():
        name = snapshot.class_names[class_id]
        if version < 27 and asked is not None and name not in asked:
            continue
        low, high = np.searchsorted(stock.rows.values, (rows.start, rows.stop))
        entries = zip(
            stock.rows.values[low:high].tolist(),
            stock.capacity.values[low:high].tolist(),
            stock.free.values[low:high].tolist(),
            strict=True,
        )
        for row, capacity, free in entries:
            resources[row][name] = {"capacity": capacity, "used": capacity - free}
    shown = {
        snapshot.uuid(row): provider_summary(snapshot, row, amounts, version)
        for row, amounts in resources.items()
    }
    return orjson.dumps(shown)[1:-1]


def provider_summary(
    snapshot: Snapshot, row: int, amounts: dict[str, dict[str, int]], version: Version
) -> dict[str, Any]:
    summary: dict[str, Any] = {"resources": amounts}
    if version >= 17:
        held = snapshot.trait_sets.members[snapshot.traits.values[row]]
        summary["traits"] = sorted(snapshot.trait_names[trait] for trait in held)
    if version >= 29:
        parent = int(snapshot.parent.values[row])
        root = int(snapshot.tree_start.values[snapshot.tree.values[row]])
        summary["parent_provider_uuid"] = None if parent < 0 else snapshot.uuid(parent)
        summary["root_provider_uuid"] = snapshot.uuid(root)
    return summary
