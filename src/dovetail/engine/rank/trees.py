"""Trees side by side as matrices: a column per tree, a line per row of it, before or after a claim.

Losses are measured on these, all trees in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Column, Mask
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.rank.cache import cache_entry
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.snapshot import Snapshot

N = TypeVar("N", int, Numbers)

NO_ROW = -1
"""Stands where a tree has fewer rows than others."""

AFTER_NO_ROW = 1
"""What turns rows into places behind that of no row."""

ROWS_PER_SEARCH = 8
"""Rows that are written into a table in the time in which one is searched for."""

CELLS_PER_STEP = 2**20
"""What is looked at in tables of trees before others get a turn."""

DEVICE = 1000
"""What a whole device counts, whatever the unit of its class."""


class Trees:
    """What the rows of some trees have free of some classes."""

    def __init__(
        self,
        free: dict[str, Numbers],
        traits: RowNumbers,
        present: Mask,
        starts: RowNumbers,
        whole: Mapping[str, int],
    ) -> None:
        """`whole`: how many units of a class make up its largest device."""
        self.free, self.traits, self.present = free, traits, present
        self._starts, self._whole = starts, whole
        self._units: dict[str, Numbers] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def units(self, name: str) -> Numbers:
        """What is free, in thousandths of a device."""
        found = self._units.get(name)
        if found is None:
            found = self._units[name] = device_units(self.free[name], self._whole[name])
        return found

    def subset(self, which: Numbers) -> Trees:
        free = {name: amounts[:, which] for name, amounts in self.free.items()}
        traits, present = self.traits[:, which], self.present[:, which]
        return Trees(free, traits, present, self._starts[which], self._whole)

    def in_slices(self, cells: Callable[[int], int]) -> Iterator[Trees]:
        """Some trees at a time, as in `slices_of_trees`."""
        most = trees_per_step(cells(len(self.present)))
        for low in range(0, len(self), most):
            yield self.subset(np.arange(low, min(low + most, len(self))))

    def distinct(self) -> tuple[Trees, Numbers]:
        """One of each kind, and for each tree which kind it is: empty hosts are often the same."""
        parts = (self.traits, self.present, *self.free.values())
        table = np.vstack(parts, dtype=np.int64, casting="safe").T
        text, width = table.tobytes(), table.itemsize * table.shape[1]
        numbers: dict[bytes, int] = {}
        kinds = [
            numbers.setdefault(text[low : low + width], len(numbers))
            for low in range(0, len(text), width)
        ]
        _, samples, which = np.unique(kinds, return_index=True, return_inverse=True)
        return self.subset(samples), which

    def take(self, lines: Block, slots: Sequence[Slot]) -> None:
        """Take away what each candidate takes, from the tree at its place.

        Trees beyond the candidates stay as they are.
        """
        starts, all_lines = self._starts[: len(lines)], np.arange(len(lines))
        shared = any(len(slot.shared_row) for slot in slots)
        for at, slot in enumerate(slots):
            taken = [pair for pair in slot.resources.items() if pair[0] in self.free]
            if not taken:
                continue
            places, mine = lines[:, at] - starts, all_lines
            if shared:
                # What another tree gives leaves this one as it is. Where one row is of another
                # tree, the others may be: of what sharing rows serve alone, each has its own.
                mine = ((places >= 0) & (places < len(self.present))).nonzero()[0]
                mine = mine[self.present[places[mine], mine]]
                places = places[mine]
            for name, amount in taken:
                self.free[name][places, mine] -= amount


def device_units(amount: N, whole: int) -> N:
    """An amount in thousandths of a device, which is so much."""
    if whole == DEVICE:
        return amount
    # Very large numbers lose their last digits, so that the product fits 64 bits.
    shift = max(whole.bit_length() - 52, 0)
    return (amount >> shift) * DEVICE // (whole >> shift)


def slices_of_trees(
    snapshot: Snapshot, trees: RowNumbers, cells: Callable[[int], int]
) -> Iterator[slice]:
    """The places of the trees, so many at a time that no step lasts long.

    `cells`: how much is looked at for a tree of so many rows. All trees of a slice are laid out
    like its largest.
    """
    sizes = snapshot.tree_size.values.take(trees)
    low = 0
    while low < len(trees):
        largest = int(sizes[low : low + trees_per_step(cells(int(sizes[low])))].max())
        high = min(low + trees_per_step(cells(largest)), len(trees))
        yield slice(low, high)
        low = high


def trees_per_step(cells: int) -> int:
    """How many, if so much is looked at for each."""
    return max(CELLS_PER_STEP // max(cells, 1), 1)


def lay_out(
    snapshot: Snapshot, trees: RowNumbers, classes: Sequence[str], whole: Mapping[str, int]
) -> Trees:
    starts, sizes = snapshot.tree_start.values.take(trees), snapshot.tree_size.values.take(trees)
    places = np.arange(sizes.max(initial=1), dtype=np.int32)[:, None]
    present: Mask = places < sizes
    rows = np.where(present, starts + places, NO_ROW)
    after = rows + AFTER_NO_ROW
    free = {name: free_of(snapshot, name, after) for name in classes}
    return Trees(free, snapshot.traits.values.take(rows), present, starts, whole)


def free_of(snapshot: Snapshot, name: str, after: RowNumbers) -> Numbers:
    """What each row has free of the class: nothing if it has none or more than all is in use."""
    inventories = snapshot.inventories_of(name)
    if inventories is None or not inventories.rows.size:
        return np.zeros(after.shape, np.int64)
    entries = cache_entry(snapshot, ("entries", snapshot.class_ids[name]), Entries)
    at = entries.of(snapshot, inventories, after)
    found: Numbers = inventories.free.values.take(at)
    np.multiply(found, at >= 0, out=found)
    return np.maximum(found, 0, out=found)


class Entries:
    """By row, where its inventory of a class stands; -1 if it has none. Rows come, none move.

    Few rows are searched for. A table of all rows is made once so many were that it would have cost
    no more. What stands for no row comes first in it, to be looked up as the others are.
    """

    def __init__(self) -> None:
        self._places = Column(np.int32)
        self._known = 0
        self._searched = 0

    @property
    def nbytes(self) -> int:
        return self._places.values.nbytes

    def of(
        self, snapshot: Snapshot, inventories: ClassInventories, after: RowNumbers
    ) -> NDArray[np.intp] | RowNumbers:
        """The entries of rows, which are told by their places after that of no row."""
        if not self._places.size:
            self._searched += after.size
            if self._searched * ROWS_PER_SEARCH < snapshot.parent.size:
                return searched_entries(inventories, after - AFTER_NO_ROW)
        missing = snapshot.parent.size + AFTER_NO_ROW - self._places.size
        if missing or self._known < inventories.rows.size:
            fresh = inventories.rows.values[self._known :]
            self._places.extend(np.full(missing, -1, np.int32))
            places = np.arange(self._known, inventories.rows.size, dtype=np.int32)
            self._places.values[fresh + AFTER_NO_ROW] = places
            self._known = inventories.rows.size
        return self._places.values.take(after)


def searched_entries(inventories: ClassInventories, rows: RowNumbers) -> NDArray[np.intp]:
    entries = inventories.rows.values
    at = np.minimum(entries.searchsorted(rows), len(entries) - 1)
    return np.where(entries.take(at) == rows, at, -1)
