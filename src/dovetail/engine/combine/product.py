"""Combines slots that have nothing to do with each other: every option of one with every other's.

No search is needed: the n-th combination of a tree follows from n and the numbers of options, for
all trees in a few vector operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.combine.offers import SlotOptions, extents, options_of
from dovetail.engine.combine.round_robin import Block, Blocks, batches, round_robin
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, is_step

MOST_CELLS = 262_144
"""Candidates times slots of one block: what one step makes."""


class Products:
    """Some trees and the options of every slot in them."""

    def __init__(self, options: Sequence[SlotOptions]) -> None:
        self.options = options
        # As floats, which have no end: nobody gets to where they are no longer exact.
        with np.errstate(over="ignore"):
            self.totals = np.multiply.reduce([each.counts for each in options], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.totals)

    def blocks(self, low: int, high: int) -> Blocks:
        last = int(min(high, np.maximum.reduce(self.totals, initial=0)))
        steps, trees = (np.arange(low, last)[:, None] < self.totals).nonzero()
        most = max(MOST_CELLS // len(self.options), 1)
        for first in range(0, max(len(trees), 1), most):
            yield self._lines(steps[first : first + most] + low, trees[first : first + most])

    def _lines(self, rest: NDArray[np.intp], trees: NDArray[np.intp]) -> Block:
        """The combinations of these numbers, each of the tree at its place."""
        found: Block = np.empty((len(trees), len(self.options)), np.int32)
        # The last slot changes fastest, as the last digit of a number does.
        for at in reversed(range(len(self.options))):
            rows, firsts, counts = self.options[at]
            rest, chosen = np.divmod(rest, counts.take(trees))
            found[:, at] = rows.take(firsts.take(trees) + chosen)
        return found


def trees_with_more(parts: list[Products], number: int) -> Products:
    """The trees of all parts that have more than `number` combinations."""
    more = [part.totals > number for part in parts]
    return Products(
        [
            join_options(
                [part.options[at].of(some) for part, some in zip(parts, more, strict=True)]
            )
            for at in range(len(parts[0].options))
        ]
    )


def join_options(parts: Sequence[SlotOptions]) -> SlotOptions:
    counts = np.concatenate([part.counts for part in parts])
    rows = np.concatenate([part.in_turn() for part in parts])
    return SlotOptions(rows, counts.cumsum() - counts, counts)


def products(snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Work[Products]:
    edges = extents(snapshot, trees)
    options = []
    for at, slot in enumerate(slots):
        options.append(options_of(slot, trees, edges))
        if is_step(at):
            yield
    return Products(options)


def combinations(snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Blocks:
    return round_robin(_parts(snapshot, slots, trees), trees_with_more)


def _parts(
    snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers
) -> Iterator[Products | None]:
    for some in batches(snapshot, trees, len(slots)):
        steps = products(snapshot, slots, some)
        part = yield from steps
        yield part


def first_per_tree(
    snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers, count: int
) -> Blocks:
    """The first `count` of each tree; those of a tree in their order."""
    found = yield from products(snapshot, slots, trees)
    yield from found.blocks(0, count)
