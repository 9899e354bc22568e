"""Combines slots that have nothing to do with each other: every option of one with every other's.

No search is needed: the n-th combination of a tree follows from n and the numbers of options, for
all trees in a few vector operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.engine.combine.offers import SlotOptions, extents, options_of
from dovetail.engine.combine.round_robin import Block, Blocks, batches, round_robin
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot


class Products:
    """Some trees and the options of every slot in them."""

    def __init__(self, options: Sequence[SlotOptions]) -> None:
        self.options = options
        # As floats, which have no end: nobody gets to where they are no longer exact.
        self.totals = np.multiply.reduce([each.counts for each in options], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.totals)

    def blocks(self, low: int, high: int) -> Blocks:
        last = int(min(high, np.maximum.reduce(self.totals, initial=0)))
        steps, trees = (np.arange(low, last)[:, None] < self.totals).nonzero()
        found: Block = np.empty((len(trees), len(self.options)), np.int32)
        rest = steps + low
        # The last slot changes fastest, as the last digit of a number does.
        for at in reversed(range(len(self.options))):
            rows, firsts, counts = self.options[at]
            rest, chosen = np.divmod(rest, counts.take(trees))
            found[:, at] = rows.take(firsts.take(trees) + chosen)
        yield found


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


def products(snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Products:
    edges = extents(snapshot, trees)
    return Products([options_of(slot, trees, edges) for slot in slots])


def combinations(snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Blocks:
    return round_robin(
        (products(snapshot, slots, some) for some in batches(trees)), trees_with_more
    )
