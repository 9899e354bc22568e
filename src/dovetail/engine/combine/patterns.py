"""Patterns: combinations found once for all trees with the same offer, placed in each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.combine.backtrack import Combination, Combinations
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.inventories import RowNumbers


class Pattern:
    """The combinations of a tree in local numbers, found when somebody wants them."""

    def __init__(self, walk: Combinations) -> None:
        self._walk = walk
        self._ended = False
        self.found: list[Combination] = []

    def reach(self, count: int) -> bool:
        """Find so many, or all there are; False: not yet, ask again."""
        while len(self.found) < count and not self._ended:
            try:
                combination = next(self._walk)
            except StopIteration:
                self._ended = True
                break
            if combination is None:
                return False
            self.found.append(combination)
        return True

    def may_have(self, count: int) -> bool:
        return len(self.found) >= count or not self._ended


class PatternedTrees:
    """Some trees, each with the number of the pattern that it follows."""

    def __init__(
        self, starts: RowNumbers, which: NDArray[np.intp], patterns: Sequence[Pattern]
    ) -> None:
        self.starts, self.which, self.patterns = starts, which, patterns

    def __len__(self) -> int:
        return len(self.starts)

    def blocks(self, low: int, high: int) -> Blocks:
        numbers, firsts = np.unique(self.which, return_index=True)
        done = 0
        for at in np.argsort(firsts).tolist():
            pattern, first = self.patterns[numbers[at]], int(firsts[at])
            while not pattern.reach(high):
                if high == low + 1 and first > done:
                    # Nobody should have to wait for a tree that comes later.
                    yield self._place(low, high, done, first)
                    done = first
                yield None
        yield self._place(low, high, done, len(self))

    def _place(self, low: int, high: int, first: int, last: int) -> Block:
        """What the patterns have found, in rows of the trees `first` to `last`."""
        numbers, which = np.unique(self.which[first:last], return_inverse=True)
        lists = [self.patterns[number].found[low:high] for number in numbers.tolist()]
        sizes = np.array([len(found) for found in lists])
        steps, trees = np.nonzero(np.arange(high - low)[:, None] < sizes[which])
        if not len(trees):
            return np.empty((0, 0), np.int32)
        options = np.array([options for found in lists for options in found], np.int32)
        chosen = options[(np.cumsum(sizes) - sizes)[which[trees]] + steps]
        starts = self.starts[first:last][trees]
        rows: Block = np.where(chosen >= 0, chosen + starts[:, None], ~chosen)
        return rows


def trees_with_more(parts: list[PatternedTrees], count: int) -> PatternedTrees:
    """The trees of all parts that may have more than `count` combinations."""
    which = np.concatenate([part.which for part in parts])
    patterns = parts[0].patterns
    more = np.array([pattern.may_have(count + 1) for pattern in patterns])[which]
    return PatternedTrees(
        np.concatenate([part.starts for part in parts])[more], which[more], patterns
    )
