"""Writes allocation candidates as JSON bytes, each part once.

An answer can hold tens of thousands of candidates that hardly differ. So their common text is
written once per answer, a tree's summaries once per change of the tree, and what is left per
candidate is filling in UUIDs.
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

Template = tuple[bytes, list[int]]
Draft = tuple[str, list[int]]

KEPT_BYTES = 64 * 2**20
"""Summaries of trees kept for the next answer."""


class CandidateWriter:
    """Fills templates: candidates differ in little more than the UUIDs of their providers.

    What the text looks like depends only on which slots are on the same provider. So there is one
    template for candidates whose slots are all on different providers (almost all are), and one
    for each other way in which slots can coincide.
    """

    def __init__(self, search: Search, version: Version) -> None:
        self._search, self._version = search, version
        self._templates: dict[tuple[int, ...], Template] = {}

    def requests(self, combinations: Sequence[Combination]) -> bytes:
        rows = {row for combination in combinations for row in combination}
        uuids = self._search.snapshot.uuids(rows)
        slots = len(self._search.slots)
        text, order = self._template(tuple(range(slots)))
        written = []
        for combination in combinations:
            if len(set(combination)) == slots:
                written.append(text % tuple([uuids[combination[at]] for at in order]))
            else:
                coinciding = tuple([combination.index(row) for row in combination])
                special, places = self._template(coinciding)
                written.append(special % tuple([uuids[combination[at]] for at in places]))
        return b",".join(written)

    def _template(self, coinciding: tuple[int, ...]) -> Template:
        """The text with a mark for each UUID, and the slots whose providers they are.

        `coinciding`: for each slot the first slot that is on the same provider.
        """
        found = self._templates.get(coinciding)
        if found is None:
            allocations, given = self._allocations(coinciding)
            mappings, mapped = self._mappings(coinciding)
            if self._version < 34:
                found = f'{{"allocations":{allocations}}}'.encode(), given
            else:
                text = f'{{"allocations":{allocations},"mappings":{mappings}}}'
                found = text.encode(), given + mapped
            self._templates[coinciding] = found
        return found

    def _allocations(self, coinciding: tuple[int, ...]) -> Draft:
        amounts: dict[int, dict[str, int]] = {}
        for at, slot in zip(coinciding, self._search.slots, strict=True):
            for name, amount in slot.resources.items():
                held = amounts.setdefault(at, {})
                held[name] = held.get(name, 0) + amount
        if self._version >= 12:
            shares = [f'"%s":{{"resources":{text(held)}}}' for held in amounts.values()]
            return f"{{{','.join(shares)}}}", list(amounts)
        shares = [
            f'{{"resource_provider":{{"uuid":"%s"}},"resources":{text(held)}}}'
            for held in amounts.values()
        ]
        return f"[{','.join(shares)}]", list(amounts)

    def _mappings(self, coinciding: tuple[int, ...]) -> Draft:
        serving: dict[str, dict[int, None]] = {}
        for at, slot in zip(coinciding, self._search.slots, strict=True):
            serving.setdefault(slot.group.suffix, {})[at] = None
        mapped = []
        for suffix, places in serving.items():
            marks = ",".join(['"%s"'] * len(places))
            mapped.append(f"{text(suffix)}:[{marks}]")
        return f"{{{','.join(mapped)}}}", [at for places in serving.values() for at in places]


def text(value: object) -> str:
    """JSON that stands in a template, where a percent sign would be a mark."""
    return orjson.dumps(value).decode().replace("%", "%%")


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
            trees = np.unique(snapshot.tree.values[rows])
            roots = snapshot.tree_root_id.values[trees].tolist()
            changes = snapshot.tree_version.values[trees].tolist()
            found = [
                self._tree(snapshot, tree, root, (snapshot.names_version, change))
                for tree, root, change in zip(trees.tolist(), roots, changes, strict=True)
            ]
        return b",".join(found)

    def _tree(self, snapshot: Snapshot, tree: int, root: int, change: tuple[int, int]) -> bytes:
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
        low, high = np.searchsorted(stock.rows.values, (rows.start, rows.stop))
        if low == high:
            # Perhaps of a class that is no more: only what is in use has to have a name.
            continue
        name = snapshot.class_names[class_id]
        if version < 27 and asked is not None and name not in asked:
            continue
        entries = zip(
            stock.rows.values[low:high].tolist(),
            stock.capacity.values[low:high].tolist(),
            stock.free.values[low:high].tolist(),
            strict=True,
        )
        for row, capacity, free in entries:
            resources[row][name] = {"capacity": capacity, "used": capacity - free}
    texts = snapshot.uuids(rows)
    uuids = {row: texts[row].decode() for row in rows}
    shown: dict[str, dict[str, Any]] = {}
    for row, amounts in resources.items():
        summary = shown[uuids[row]] = {"resources": amounts}
        if version >= 17:
            held = snapshot.trait_sets.members[snapshot.traits.values[row]]
            summary["traits"] = [snapshot.trait_names[trait] for trait in sorted(held)]
        if version >= 29:
            # From here on the rows are those of a whole tree, so parent and root are among them.
            parent = int(snapshot.parent.values[row])
            summary["parent_provider_uuid"] = uuids.get(parent)
            summary["root_provider_uuid"] = uuids[rows.start]
    return orjson.dumps(shown)[1:-1]
