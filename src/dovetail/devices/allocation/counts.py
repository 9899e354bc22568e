"""Tables of units per device class and row, all and free, with running totals over the rows.

Lazy counts (`class_counts`) write them, row by row or a thousand rows in one product of arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from dovetail.core.columns import FIRST_TABLE, Amounts, enlarged
from dovetail.devices.allocation.node_devices import NodeDevices


class CountTable:
    """A line per class (by its column), in it a number per row."""

    def __init__(self) -> None:
        self.units: Amounts = np.zeros((FIRST_TABLE, FIRST_TABLE), np.int64)
        self.free: Amounts = np.zeros((FIRST_TABLE, FIRST_TABLE), np.int64)
        self.total_units: Amounts = np.zeros(FIRST_TABLE, np.int64)
        self.total_free: Amounts = np.zeros(FIRST_TABLE, np.int64)

    def make_room(self, columns: int, rows: int) -> None:
        self.units = enlarged(self.units, columns, rows)
        self.free = enlarged(self.free, columns, rows)
        if len(self.total_units) < len(self.units):
            self.total_units, self.total_free = self.units.sum(axis=1), self.free.sum(axis=1)

    def put(self, rows: Sequence[int], units: Amounts, free: Amounts) -> None:
        """New numbers for these rows: in the line of each class one for each of them."""
        used = slice(len(units))
        at = np.asarray(rows, np.int64)
        for table, totals, new in (
            (self.units, self.total_units, units),
            (self.free, self.total_free, free),
        ):
            totals[used] += new.sum(axis=1) - table[used, at].sum(axis=1)
            table[used, at] = new

    def clear(self, rows: Sequence[int]) -> None:
        empty = np.zeros((len(self.units), len(rows)), np.int64)
        self.put(rows, empty, empty)


def counts_of(nodes: Sequence[NodeDevices], selected: Amounts) -> tuple[Amounts, Amounts]:
    """Units and free units that each class selects, of each node."""
    sizes = [len(each.equivalence) for each in nodes]
    numbers = np.fromiter(
        chain.from_iterable(each.equivalence for each in nodes), np.int64, sum(sizes)
    )
    selects = selected[:, numbers]
    starts = np.cumsum([0, *sizes[:-1]])
    has_some = np.asarray(sizes) > 0

    def sums(amounts: Iterable[Iterable[int]]) -> Amounts:
        found = np.zeros((len(selected), len(nodes)), np.int64)
        if len(numbers):
            weighed = selects * np.fromiter(chain.from_iterable(amounts), np.int64, len(numbers))
            # A node without devices would be given the first of the next.
            found[:, has_some] = np.add.reduceat(weighed, starts[has_some], axis=1)
        return found

    return sums(each.units for each in nodes), sums(each.free for each in nodes)
