"""Combines slots that have nothing to do with each other: every option of one with every other's.

No search is needed: the n-th combination of a tree follows from n and the numbers of options, for
all trees of a batch in a few vector operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.columns import Rows
from dovetail.engine.feasible import Slot
from dovetail.engine.offers import batches, options
from dovetail.engine.snapshot import Snapshot

ENOUGH = 2.0**62
"""Where counting combinations stops: nobody gets there."""


class Batch:
    """Some trees and the options of every slot in them."""

    def __init__(self, snapshot: Snapshot, slots: Sequence[Slot], trees: Rows) -> None:
        found = [options(snapshot, slot, trees) for slot in slots]
        self._rows = [rows for rows, _ in found]
        self._counts = [counts for _, counts in found]
        self._firsts = [np.cumsum(counts) - counts for counts in self._counts]
        # The last slot changes fastest, as the last digit of a number does.
        self._strides: list[NDArray[np.int64]] = []
        stride = np.ones(len(trees))
        for counts in reversed(self._counts):
            self._strides.insert(0, stride.astype(np.int64))
            stride = np.minimum(stride * counts, ENOUGH)
        self._totals = stride.astype(np.int64)
        self.longest = int(self._totals.max(initial=0))

    def combinations(self, number: int) -> list[tuple[int, ...]]:
        """The combination of this number of each tree that has so many."""
        has = np.flatnonzero(self._totals > number)
        chosen = [
            rows[firsts[has] + number // strides[has] % counts[has]]
            for rows, firsts, strides, counts in zip(
                self._rows, self._firsts, self._strides, self._counts, strict=True
            )
        ]
        return [tuple(rows) for rows in np.stack(chosen, axis=1).tolist()]


def in_turns(snapshot: Snapshot, slots: Sequence[Slot], trees: Rows) -> Iterator[tuple[int, ...]]:
    """The first combination of every tree, then the second of every tree, and so on."""
    waiting: list[Batch] = []
    for some in batches(trees):
        batch = Batch(snapshot, slots, some)
        yield from batch.combinations(0)
        waiting.append(batch)
    number = 1
    while waiting := [batch for batch in waiting if batch.longest > number]:
        for batch in waiting:
            yield from batch.combinations(number)
        number += 1
