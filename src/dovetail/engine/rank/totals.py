"""Totals per tree of a resource class, free and in all, brought up to date where trees changed.

Policies ask for them; they are kept in the cache of the snapshot.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import spans
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.rank.cache import cache_entry, with_zeros
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import few_kinds_in_steps
from dovetail.engine.work import Work

Numbers = NDArray[np.int64]

HUGE = 2**48
"""Where an amount stops to count, so that the sum of many still fits 64 bits."""


class TreeTotals:
    """By number of the tree: free units and capacity of one class."""

    def __init__(self) -> None:
        self._versions: Numbers = np.zeros(0, np.int64)
        self.free: Numbers = np.zeros(0, np.int64)
        self.capacity: Numbers = np.zeros(0, np.int64)
        self.largest = 1
        """The most that a tree has in all."""

    @property
    def nbytes(self) -> int:
        return self._versions.nbytes + self.free.nbytes + self.capacity.nbytes

    def refresh(self, snapshot: Snapshot, inventories: ClassInventories) -> Work[None]:
        versions, sizes = snapshot.tree_version.values, snapshot.tree_size.values
        missing = len(versions) - len(self._versions)
        if missing:
            self._versions = with_zeros(self._versions, missing)
            self.free = with_zeros(self.free, missing)
            self.capacity = with_zeros(self.capacity, missing)
        # Trees that went keep their version: their size tells.
        now = np.where(sizes > 0, versions, -1)
        stale = np.flatnonzero(self._versions != now).astype(np.int32)
        if len(stale):
            kinds = None
            if 2 * len(stale) > len(now):
                kinds = yield from few_kinds_in_steps(snapshot)
            self._versions[stale] = now[stale]
            if kinds is not None:
                self._add_up(snapshot, inventories, kinds.samples)
                alike = kinds.samples.take(kinds.of)
                self.free, self.capacity = self.free.take(alike), self.capacity.take(alike)
            elif 2 * len(stale) > len(now):
                self._add_up_all(snapshot, inventories)
            else:
                self._add_up(snapshot, inventories, stale)
            self.largest = max(int(self.capacity.max()), 1)

    def _add_up_all(self, snapshot: Snapshot, inventories: ClassInventories) -> None:
        """The same for every tree, without looking for where its entries are."""
        homes = snapshot.tree.values.take(inventories.rows.values)
        there = homes >= 0
        homes = homes.compress(there)
        self.free, self.capacity = np.zeros_like(self.free), np.zeros_like(self.capacity)
        for column, sums in ((inventories.free, self.free), (inventories.capacity, self.capacity)):
            np.add.at(sums, homes, np.minimum(column.values.compress(there), HUGE))

    def _add_up(self, snapshot: Snapshot, inventories: ClassInventories, trees: RowNumbers) -> None:
        starts = snapshot.tree_start.values[trees]
        lows, highs = np.searchsorted(
            inventories.rows.values, (starts, starts + snapshot.tree_size.values[trees])
        )
        entries, ends = spans(lows, highs), np.cumsum(highs - lows)
        for column, sums in ((inventories.free, self.free), (inventories.capacity, self.capacity)):
            amounts = np.minimum(column.values[entries], HUGE)
            running = np.concatenate(([0], np.cumsum(amounts)))
            sums[trees] = running[ends] - running[ends - (highs - lows)]


def totals_in_steps(snapshot: Snapshot, name: str) -> Work[TreeTotals]:
    """The totals of a class that somebody has."""
    inventories = snapshot.inventories_of(name)
    assert inventories
    key: Hashable = ("totals", snapshot.class_ids[name])
    found: TreeTotals = cache_entry(snapshot, key, TreeTotals)
    yield from found.refresh(snapshot, inventories)
    return found
