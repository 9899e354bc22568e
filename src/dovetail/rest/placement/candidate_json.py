"""Writes allocation candidates as JSON bytes, each part once.

An answer can hold tens of thousands of candidates made of few parts. So a provider's share in a
candidate is encoded once per answer, a tree's summaries once per change of the tree, and what is
left per candidate is joining bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from dovetail.engine import Search, Snapshot
from dovetail.engine.combine import Combination
from dovetail.engine.feasible import Slot
from dovetail.rest.http import Version

KEPT_BYTES = 64 * 2**20
"""Summaries of trees kept for the next answer."""


class Parts(dict[int, bytes]):
    """What is written of a row, by row; written when first asked for."""

    def __init__(self, uuids: Mapping[int, bytes], before: bytes, after: bytes) -> None:
        self._uuids, self._before, self._after = uuids, before, after

    def __missing__(self, row: int) -> bytes:
        part = self[row] = self._before + self._uuids[row] + self._after
        return part


class CandidateWriter:
    """Joins the parts of one answer."""

    def __init__(self, search: Search, version: Version) -> None:
        self._search, self._version = search, version
        slots = search.slots
        self._giving = [at for at, slot in enumerate(slots) if slot.resources]
        self._suffixed = [at for at, slot in enumerate(slots) if slot.group.suffix]
        self._unsuffixed = [at for at, slot in enumerate(slots) if not slot.group.suffix]
        self._uuids: dict[int, bytes] = {}
        self._shares: dict[tuple[int, ...], Parts] = {}

    def requests(self, combinations: Sequence[Combination]) -> bytes:
        rows = sorted({row for combination in combinations for row in combination})
        texts = self._search.snapshot.uuids(rows)
        self._uuids = {row: b'"%b"' % t.encode() for row, t in zip(rows, texts, strict=True)}
        opening, closing = (b"{", b"}") if self._version >= 12 else (b"[", b"]")
        lead, mapped = b'{"allocations":' + opening, closing + b',"mappings":{'
        allocations, mappings = self._allocations(), self._mappings()
        if self._version < 34:
            last = closing + b"}"
            written = [lead + allocations(combination) + last for combination in combinations]
        else:
            written = [
                b"%b%b%b%b}}" % (lead, allocations(combination), mapped, mappings(combination))
                for combination in combinations
            ]
        return b"[" + b",".join(written) + b"]"

    def _allocations(self) -> Callable[[Combination], bytes]:
        giving = self._giving
        singles = [(at, self._share((at,))) for at in giving]
        count = len(giving)

        def write(rows: Combination) -> bytes:
            if len({rows[at] for at in giving}) == count:
                # Each slot on a row of its own: the common case, and the fast one.
                return b",".join([share[rows[at]] for at, share in singles])
            by_row: dict[int, tuple[int, ...]] = {}
            for at in giving:
                by_row[rows[at]] = (*by_row.get(rows[at], ()), at)
            return b",".join([self._share(slots)[row] for row, slots in by_row.items()])

        return write

    def _share(self, slots: tuple[int, ...]) -> Parts:
        """What a provider gives to these slots together."""
        parts = self._shares.get(slots)
        if parts is None:
            amounts: dict[str, int] = {}
            for at in slots:
                for name, amount in self._search.slots[at].resources.items():
                    amounts[name] = amounts.get(name, 0) + amount
            resources = b'"resources":' + orjson.dumps(amounts) + b"}"
            if self._version >= 12:
                parts = Parts(self._uuids, b"", b":{" + resources)
            else:
                parts = Parts(self._uuids, b'{"resource_provider":{"uuid":', b"}," + resources)
            self._shares[slots] = parts
        return parts

    def _mappings(self) -> Callable[[Combination], bytes]:
        slots, unsuffixed, uuids = self._search.slots, self._unsuffixed, self._uuids
        suffixed = [
            (at, Parts(uuids, orjson.dumps(slots[at].group.suffix) + b":[", b"]"))
            for at in self._suffixed
        ]

        def write(rows: Combination) -> bytes:
            items = [parts[rows[at]] for at, parts in suffixed]
            if unsuffixed:
                several = {rows[at] for at in unsuffixed}
                listed = b",".join([uuids[row] for row in sorted(several)])
                items.append(b'"":[%b]' % listed)
            return b",".join(items)

        return write


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
    uuids = dict(zip(rows, snapshot.uuids(rows), strict=True))
    shown = {
        uuids[row]: provider_summary(snapshot, row, amounts, version)
        for row, amounts in resources.items()
    }
    return orjson.dumps(shown)[1:-1]


def provider_summary(
    snapshot: Snapshot, row: int, amounts: dict[str, dict[str, int]], version: Version
) -> dict[str, Any]:
    summary: dict[str, Any] = {"resources": amounts}
    if version >= 17:
        held = snapshot.trait_sets.members[snapshot.traits.values[row]]
        summary["traits"] = [snapshot.trait_names[trait] for trait in sorted(held)]
    if version >= 29:
        parent = int(snapshot.parent.values[row])
        root = int(snapshot.tree_start.values[snapshot.tree.values[row]])
        summary["parent_provider_uuid"] = None if parent < 0 else snapshot.uuid(parent)
        summary["root_provider_uuid"] = snapshot.uuid(root)
    return summary
