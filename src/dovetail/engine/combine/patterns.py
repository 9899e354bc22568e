"""Patterns: combinations found once for all trees with the same offer, placed in each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Column
from dovetail.engine.combine.backtrack import Combination, Combinations
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.inventories import RowNumbers

LONGEST_KEPT = 256
"""Combinations of a pattern that are kept for the next search; a longer list is found again."""

UNKNOWN = -1
"""Number of the pattern of a tree that was not looked at."""

BYTES_PER_LINE = 300
"""What a line of an offer is reckoned with: options, rules and key."""

BYTES_PER_COMBINATION = 64

COMBINATIONS_PER_YIELD = 256
"""Found, or patterns looked at, before a step ends."""

PatternKey = tuple[int, bytes]
"""Shape of a tree and what it offers: trees with the same key have the same combinations."""

Walk = Callable[[], Combinations]
"""Starts the search for the combinations of one offer."""


class Pattern:
    """The combinations of a tree in local numbers, found when somebody wants them."""

    def __init__(self, store: PatternStore, number: int, walk: Walk) -> None:
        """`walk` starts from the first combination each time it is called."""
        self._store, self._number = store, number
        self._start = walk
        self._walk: Combinations | None = None
        self._ended = False
        self.found: list[Combination] = []

    def reach(self, count: int) -> bool:
        """Find so many, or all there are; False: not yet, ask again."""
        if self._walk is None and not self._ended:
            self._walk = self._start()
        while len(self.found) < count and self._walk is not None:
            try:
                combination = next(self._walk)
            except StopIteration:
                self._ended, self._walk = True, None
                if not self.found:
                    self._store.barren.values[self._number] = True
                break
            if combination is None:
                return False
            self.found.append(combination)
            self._store.count(self)
        return True

    def may_have(self, count: int) -> bool:
        return len(self.found) >= count or not self._ended

    def forget(self) -> None:
        """Begin again from the first combination when somebody wants it."""
        self.found, self._walk, self._ended = [], None, False


class PatternStore:
    """The patterns of requests that differ at most in what offers tell, by number; they only grow.

    A search that is under way goes on with the store it has: one that is too large is left to it.
    """

    def __init__(self) -> None:
        self.patterns: list[Pattern] = []
        self.barren = Column(np.bool_)
        """Those known to have no combination."""
        self._numbers: dict[PatternKey, int] = {}
        self._long: list[Pattern] = []
        self.size = 0
        """In bytes, about."""

    def find(self, key: PatternKey) -> int | None:
        return self._numbers.get(key)

    def add(self, key: PatternKey, walk: Walk, lines: int) -> int:
        number = self._numbers[key] = len(self.patterns)
        self.barren.reach(number + 1)
        self.patterns.append(Pattern(self, number, walk))
        self.size += len(key[1]) + lines * BYTES_PER_LINE
        return number

    def count(self, pattern: Pattern) -> None:
        """One more combination was found."""
        self.size += BYTES_PER_COMBINATION + 8 * len(pattern.found[-1])
        if len(pattern.found) == LONGEST_KEPT + 1:
            self._long.append(pattern)

    def trim(self) -> None:
        """Forget long lists, and how far the search for them went."""
        for pattern in self._long:
            if pattern.found:
                each = BYTES_PER_COMBINATION + 8 * len(pattern.found[0])
                self.size -= each * len(pattern.found)
                pattern.forget()
        self._long = []


class TreePatterns:
    """By number of the tree its pattern in one store, as far as that is known."""

    def __init__(self) -> None:
        self.store: PatternStore | None = None
        """None before anything is known."""
        self._which: RowNumbers = np.empty(0, np.int32)

    @property
    def size(self) -> int:
        """In bytes, about."""
        return self._which.nbytes + (self.store.size if self.store is not None else 0)

    def of(self, trees: RowNumbers) -> RowNumbers:
        """The numbers of the patterns of these trees."""
        self._reach(trees)
        return self._which.take(trees)

    def learn(self, trees: RowNumbers, numbers: Sequence[int] | RowNumbers) -> None:
        self._reach(trees)
        self._which[trees] = numbers

    def of_one(self, tree: int) -> int:
        return int(self._which[tree]) if tree < len(self._which) else UNKNOWN

    def learn_one(self, tree: int, number: int) -> None:
        if tree < len(self._which):
            self._which[tree] = number

    def forget(self, trees: RowNumbers) -> None:
        """These trees have changed."""
        self._which[trees.compress(trees < len(self._which))] = UNKNOWN

    def possible(self, trees: RowNumbers) -> RowNumbers:
        """The trees without those that are known to have no combination."""
        if self.store is None or not self.store.barren.values.any():
            return trees
        which = self.of(trees)
        keep = (which < 0) | ~self.store.barren.values.take(which, mode="clip")
        return trees.compress(keep)

    def _reach(self, trees: RowNumbers) -> None:
        missing = int(trees.max(initial=-1)) + 1 - len(self._which)
        if missing > 0:
            # By half as much again: trees are looked at in ever longer rows.
            room = np.full(max(missing, len(self._which) // 2), UNKNOWN, np.int32)
            self._which = np.concatenate((self._which, room))


class PatternedTrees:
    """Some trees, each with the number of the pattern that it follows."""

    def __init__(
        self, starts: RowNumbers, which: NDArray[np.int32], patterns: Sequence[Pattern]
    ) -> None:
        self.starts, self.which, self.patterns = starts, which, patterns

    def __len__(self) -> int:
        return len(self.starts)

    def blocks(self, low: int, high: int) -> Blocks:
        firsts: dict[int, int] = {}
        for at, number in enumerate(self.which.tolist()):
            firsts.setdefault(number, at)
        done = made = 0
        for number, first in firsts.items():
            pattern = self.patterns[number]
            made -= len(pattern.found)
            while not pattern.reach(high):
                if high == low + 1 and first > done:
                    # Nobody should have to wait for a tree that comes later.
                    yield self._place(low, high, done, first)
                    done = first
                yield None
            made += 1 + len(pattern.found)
            if made > COMBINATIONS_PER_YIELD:
                made = 0
                yield None
        yield self._place(low, high, done, len(self))

    def _place(self, low: int, high: int, first: int, last: int) -> Block:
        """What the patterns have found, in rows of the trees `first` to `last`."""
        places: dict[int, int] = {}
        numbers = self.which[first:last].tolist()
        which = np.array([places.setdefault(number, len(places)) for number in numbers], np.intp)
        lists = [self.patterns[number].found[low:high] for number in places]
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
