"""Combines slots that have nothing to do with each other: every option of one with every other's.

No search is needed: the n-th combination of a tree follows from n and the numbers of options, for
all trees in a few vector operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.columns import Rows
from dovetail.engine.feasible import Slot
from dovetail.engine.offers import extents, options
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.turns import Blocks, batches, in_turns

ENOUGH = 2.0**62
"""Where counting combinations stops: nobody gets there."""

Grid = NDArray[np.int64]
"""A line per slot, a column per tree."""


class Products:
    """Some trees and the options of every slot in them."""

    def __init__(self, rows: Rows, firsts: Grid, counts: Grid) -> None:
        """The options in `rows`: for each slot and tree where they begin, and how many they are."""
        self.rows, self.firsts, self.counts = rows, firsts, counts
        # The last slot changes fastest, as the last digit of a number does.
        below = np.cumprod(counts[::-1].astype(np.float64), axis=0)[::-1]
        bounded = np.minimum(below, ENOUGH).astype(np.int64)
        self._strides = np.vstack((bounded[1:], np.ones_like(bounded[:1])))
        self.totals = bounded[0]

    def __len__(self) -> int:
        return len(self.totals)

    def blocks(self, low: int, high: int) -> Blocks:
        last = min(high, int(self.totals.max(initial=0)))
        steps, trees = np.nonzero(np.arange(low, last)[:, None] < self.totals)
        numbers = steps + low
        chosen = numbers // self._strides[:, trees] % self.counts[:, trees]
        yield self.rows[self.firsts[:, trees] + chosen].T


def beyond(parts: list[Products], number: int) -> Products:
    """The trees of all parts that have more than `number` combinations."""
    rows = np.concatenate([part.rows for part in parts])
    offsets = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
    firsts = np.hstack([part.firsts + at for part, at in zip(parts, offsets, strict=True)])
    more = np.concatenate([part.totals for part in parts]) > number
    return Products(rows, firsts[:, more], np.hstack([part.counts for part in parts])[:, more])


def products(snapshot: Snapshot, slots: Sequence[Slot], trees: Rows) -> Products:
    edges = extents(snapshot, trees)
    found = [options(slot, trees, edges) for slot in slots]
    counts = np.array([counts for _, counts in found], np.int64)
    ends = counts.cumsum().reshape(counts.shape)
    return Products(np.concatenate([rows for rows, _ in found]), ends - counts, counts)


def combinations(snapshot: Snapshot, slots: Sequence[Slot], trees: Rows) -> Blocks:
    return in_turns((products(snapshot, slots, some) for some in batches(trees)), beyond)
