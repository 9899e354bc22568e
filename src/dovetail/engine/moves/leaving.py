"""The smallest sets of consumers whose leaving makes some tree fit.

`service/explanations` tells it of the trees that would fit if they were empty, reads who holds of
what those are short of (`short_trees`), and asks for the sets. Up to EXACT_MOVES consumers they are
exact: trees are tried in the order of their bounds (`leaving_tree`). Larger sets are shrunk
instead: all consumers of a tree leave, and as many of each kind come back as can; no part of what
is left would do. It ends since the sets are finite, and yields after each tree and each set tried;
what was found so far is there at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.moves.candidates import Candidates
from dovetail.engine.moves.holders import Holder
from dovetail.engine.moves.leaving_tree import MANY, LeavingTree

EXACT_MOVES = 3
MOST_SETS = 8
"""Found of one size: more would not be told."""
SETS_OF_TREE = 2
MOST_SHRUNK = 16
"""Trees that are tried for larger sets."""


class LeavingSet(msgspec.Struct, frozen=True):
    """Consumers whose leaving makes a tree fit."""

    tree: int
    leaving: Sequence[Holder]
    smallest: bool
    """Whether fewer would certainly not do, on any host that was looked at."""


class LeavingSearch:
    """The search over all trees that would fit if they were empty."""

    def __init__(self, fleet: FleetProblem) -> None:
        self._fleet = fleet
        self._trees: list[LeavingTree] = []
        self._candidates = Candidates(())
        self._ruled_out = 0
        """No set of so many consumers or fewer would do."""
        self.found: list[LeavingSet] = []

    def look_at(self, tree: int) -> Work[None]:
        found = LeavingTree(self._fleet, tree)
        yield from found.look()
        self._trees.append(found)

    @property
    def short_trees(self) -> list[int]:
        """The trees, of those looked at and of those that share with them, whose holders matter."""
        rows = {row for tree in self._trees for row, _ in tree.short}
        return sorted(set(self._fleet.snapshot.tree.values[sorted(rows)].tolist()))

    def take(self, holders: Sequence[Holder]) -> Work[None]:
        """All who hold something there; call it once all trees were looked at."""
        self._candidates = Candidates(holders)
        yield from self._candidates.index({entry for tree in self._trees for entry in tree.short})
        for tree in self._trees:
            yield from tree.take(self._candidates)
            yield
        self._trees.sort(key=lambda tree: tree.bound)

    def smallest(self) -> Work[None]:
        """Find the smallest sets."""
        for size in range(1, EXACT_MOVES + 1):
            for tree in self._trees:
                if tree.bound > size or len(self.found) >= MOST_SETS:
                    break
                for numbers in (yield from tree.sets(size, SETS_OF_TREE)):
                    self.found.append(self._set(tree, numbers))
                yield
            if self.found:
                return
            self._ruled_out = size
        yield from self.shrink()

    def shrink(self) -> Work[None]:
        """Find sets no part of which would do, if none was found that is certainly smallest."""
        for tree in self._trees[:MOST_SHRUNK]:
            numbers = yield from tree.shrunk(self._candidates)
            fewest = min((len(one.leaving) for one in self.found), default=MANY)
            if numbers and len(numbers) < fewest:
                self.found.clear()
            if numbers and len(numbers) <= fewest and len(self.found) < MOST_SETS:
                self.found.append(self._set(tree, numbers))
            yield

    def _set(self, tree: LeavingTree, numbers: Sequence[int]) -> LeavingSet:
        least = max(min(tree.bound for tree in self._trees), self._ruled_out + 1)
        holders = [self._candidates.holders[number] for number in numbers]
        return LeavingSet(tree.tree, holders, len(holders) <= least)
