"""Round robin over trees: the first combination of every tree, then the second of every tree.

So a limit gets as many hosts as it can. Combinations travel in blocks, whose cost is that of a few
vector operations, not in single ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot

Block = NDArray[np.int32]
"""Combinations, one a line: the row chosen for each slot."""

Blocks = Iterator[Block | None]
"""None now and then, when much was tried and nothing found: a mere yield."""

FIRST_BATCH = 16
LARGEST_BATCH = 1024
"""Batches grow: a small limit is served from the first, a long answer works in large strides."""

MOST_OPTIONS = 65_536
"""Rows times slots of the trees of a batch: what one step looks at."""

LARGEST_TURN = 4096
"""Combinations that are taken at once when few trees have many each."""


class TreeBatch(Protocol):
    """Some trees, each with combinations that are counted from 0."""

    def __len__(self) -> int: ...

    def blocks(self, low: int, high: int) -> Blocks:
        """Combinations `low` up to `high` of every tree; ordered by number, then by tree."""
        ...


P = TypeVar("P", bound=TreeBatch)


def batches(
    snapshot: Snapshot, trees: RowNumbers, slots: int, size: int = FIRST_BATCH
) -> Iterator[RowNumbers]:
    """The trees in their order, some at a time, with at most so many options as a step may have.

    `size`: of the first batch.
    """
    done = 0
    while done < len(trees):
        some = trees[done : done + size]
        rows = snapshot.tree_size.values.take(some).cumsum()
        fitting = int(rows.searchsorted(MOST_OPTIONS // slots, side="right"))
        some = some[: max(fitting, 1)]
        yield some
        done += len(some)
        size = min(size * 4, LARGEST_BATCH)


def round_robin(parts: Iterable[P | None], trees_with_more: Callable[[list[P], int], P]) -> Blocks:
    """All blocks of all parts; `trees_with_more` joins trees that may have more than so many."""
    seen = []
    for part in parts:
        if part is None:
            yield None
            continue
        yield from part.blocks(0, 1)
        seen.append(part)
    low, high = 1, 2
    while seen and len(rest := trees_with_more(seen, low)):
        yield from rest.blocks(low, high)
        # Twice as many as the last time: little is worked out in vain, and few blocks are small.
        step = min(2 * (high - low), LARGEST_TURN // len(rest))
        seen, low, high = [rest], high, high + max(step, 1)
