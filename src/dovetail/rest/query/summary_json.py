"""JSON encoder of provider summaries, the second half of an answer with allocation candidates.

From version 1.29 on an answer tells all providers of every tree that gives something. The text of a
tree is remembered until the tree changes; new text is filled into a template, of which there is one
for all trees of the same layout. So an answer costs what changed, and little for each tree.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import orjson

from dovetail.core.bounded_cache import SizedCache
from dovetail.engine import Snapshot
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.rest.server.http import Version

KEPT_BYTES = 64 * 2**20
"""Of summaries of trees, for the next answer."""

TEMPLATE_BYTES = 4 * 2**20
"""Of templates: fleets have few layouts."""

TREES_AT_ONCE = 32
"""Trees that are looked up together; each is a step of its own."""

TEMPLATES = "summary templates"


class SummaryWriter:
    """Summaries of providers, remembered per tree until the tree changes."""

    def __init__(self) -> None:
        self._summaries: OrderedDict[int, tuple[tuple[int, int], bytes]] = OrderedDict()
        self._size = 0

    def summaries(
        self,
        snapshot: Snapshot,
        slots: Sequence[Slot],
        combinations: Block,
        version: Version,
    ) -> Iterator[bytes]:
        """The providers of every tree that gives something; before 1.29 only those that give."""
        last = b""
        for text in self._texts(snapshot, slots, combinations, version):
            yield last
            last = text
        yield last[:-1]

    def _texts(
        self, snapshot: Snapshot, slots: Sequence[Slot], combinations: Block, version: Version
    ) -> Iterator[bytes]:
        """Of some providers or trees, with a comma after each."""
        giving = combinations[:, [at for at, slot in enumerate(slots) if slot.resources]]
        if version < 29:
            asked = {name for slot in slots for name in slot.resources}
            for row in np.unique(giving).tolist():
                yield provider_json(snapshot, row, version, asked)
        else:
            trees = np.unique(snapshot.tree.values.take(giving))
            for first in range(0, len(trees), TREES_AT_ONCE):
                yield from self.trees(snapshot, trees[first : first + TREES_AT_ONCE])

    def trees(self, snapshot: Snapshot, trees: RowNumbers) -> Iterator[bytes]:
        """The summaries of each tree, with a comma after it."""
        roots = snapshot.tree_root_id.values.take(trees).tolist()
        changes = snapshot.tree_version.values.take(trees).tolist()
        states = [(snapshot.names_version, change) for change in changes]
        found = [self._kept(root, state) for root, state in zip(roots, states, strict=True)]
        missing = [at for at, text in enumerate(found) if not text]
        fresh = trees_json(snapshot, trees.take(missing)) if missing else iter(())
        for at, text in enumerate(found):
            if text:
                yield text
                continue
            written = next(fresh)
            self._keep(roots[at], states[at], written)
            yield written

    def _kept(self, root: int, state: tuple[int, int]) -> bytes:
        """Empty if it is not known, or not any more."""
        kept = self._summaries.get(root)
        return kept[1] if kept is not None and kept[0] == state else b""

    def _keep(self, root: int, state: tuple[int, int], text: bytes) -> None:
        old = self._summaries.get(root)
        self._size += len(text) - (len(old[1]) if old else 0)
        self._summaries[root] = (state, text)
        self._summaries.move_to_end(root)
        while self._size > KEPT_BYTES:
            _, (_, dropped) = self._summaries.popitem(last=False)
            self._size -= len(dropped)


class TreeTemplate(msgspec.Struct, frozen=True):
    """The text of a tree with gaps, and which of the tree's values goes into each."""

    text: bytes
    pick: itemgetter[Any]
    """From the UUIDs of the rows, then capacity and use of each inventory, class by class."""


def trees_json(snapshot: Snapshot, trees: RowNumbers) -> Iterator[bytes]:
    """The summaries of all providers of each tree, with a comma after each."""
    templates = snapshot.cached(
        TEMPLATES, lambda: SizedCache[Hashable, TreeTemplate](TEMPLATE_BYTES)
    )
    starts = snapshot.tree_start.values.take(trees)
    ends = starts + snapshot.tree_size.values.take(trees)
    bounds = [
        (
            class_id,
            inventories,
            inventories.rows.values.searchsorted(starts).tolist(),
            inventories.rows.values.searchsorted(ends).tolist(),
        )
        for class_id, inventories in snapshot.inventories.items()
    ]
    shapes = snapshot.tree_shape.values.take(trees).tolist()
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        layout: list[Hashable] = [
            snapshot.names_version,
            shapes[at],
            snapshot.traits.values[start:end].tobytes(),
        ]
        values: list[Any] = snapshot.uuids.values[start:end].tolist()
        for class_id, inventories, lows, highs in bounds:
            low, high = lows[at], highs[at]
            if low == high:
                # Perhaps of a class that is no more: only what is in use has to have a name.
                continue
            layout += class_id, (inventories.rows.values[low:high] - start).tobytes()
            capacity = inventories.capacity.values[low:high]
            values += capacity.tolist()
            values += (capacity - inventories.free.values[low:high]).tolist()
        key = tuple(layout)
        template = templates.get(key)
        if template is None:
            template = tree_template(snapshot, range(start, end))
            templates.put(key, template, 2 * len(template.text))
        yield template.text % template.pick(values)


def tree_template(snapshot: Snapshot, rows: range) -> TreeTemplate:
    """Of the tree that has these rows, for all trees of its layout."""
    resources: list[list[str]] = [[] for _ in rows]
    picked: list[list[int]] = [[] for _ in rows]
    taken = len(rows)
    for class_id, inventories in snapshot.inventories.items():
        low, high = inventories.rows.values.searchsorted((rows.start, rows.stop)).tolist()
        for at, row in enumerate(inventories.rows.values[low:high].tolist()):
            name = orjson.dumps(snapshot.class_names[class_id]).decode()
            resources[row - rows.start].append(f'{name}:{{"capacity":%d,"used":%d}}')
            picked[row - rows.start] += taken + at, taken + high - low + at
        taken += 2 * (high - low)
    parents = snapshot.parent.values[rows.start : rows.stop].tolist()
    texts, picks = [], list[int]()
    for at, parent in enumerate(parents):
        above = "null" if parent < 0 else '"%b"'
        traits = orjson.dumps(traits_of(snapshot, rows.start + at)).decode().replace("%", "%%")
        texts.append(
            f'"%b":{{"resources":{{{",".join(resources[at])}}},"traits":{traits},'
            f'"parent_provider_uuid":{above},"root_provider_uuid":"%b"}},'
        )
        picks += at, *picked[at], *(() if parent < 0 else (parent - rows.start,)), 0
    return TreeTemplate("".join(texts).encode(), itemgetter(*picks))


def traits_of(snapshot: Snapshot, row: int) -> list[str]:
    held = snapshot.trait_sets.members(snapshot.traits.values[row])
    return [snapshot.trait_names[trait] for trait in sorted(held)]


def provider_json(snapshot: Snapshot, row: int, version: Version, asked: set[str]) -> bytes:
    """The summary of one provider before 1.29, with a comma after it.

    Before 1.27 only the classes `asked` for are shown.
    """
    resources: dict[str, dict[str, int]] = {}
    for class_id, inventories in snapshot.inventories.items():
        entry = inventories.entry(row)
        if entry is None:
            continue
        name = snapshot.class_names[class_id]
        if version < 27 and name not in asked:
            continue
        capacity = int(inventories.capacity.values[entry])
        used = capacity - int(inventories.free.values[entry])
        resources[name] = {"capacity": capacity, "used": used}
    summary: dict[str, Any] = {"resources": resources}
    if version >= 17:
        summary["traits"] = traits_of(snapshot, row)
    return orjson.dumps({snapshot.uuid(row): summary})[1:-1] + b","
