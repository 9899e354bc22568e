"""best-fit: the tree that is left with least of what is asked for.

Points: 100 less the mean, over the classes asked for, of what the tree has left over in percent of
what the largest tree has in all. In a tree the rows that are left with least come first.
"""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.cache import at_once
from dovetail.engine.rank.policies.policy import (
    MILLION,
    POINT,
    Numbers,
    PolicyCase,
    PolicyScores,
    by_class,
    mean,
    share,
)
from dovetail.engine.work import Work


class BestFit:
    is_even = True

    def __init__(self, case: PolicyCase) -> None:
        self._case = case

    @property
    def basis(self) -> Hashable:
        return tuple(self._case.totals[name].largest for name in self._case.requested)

    def score(self, lines: Block) -> Work[PolicyScores]:
        points = (MILLION - by_class(self._case, lines, self._left)) // POINT
        return at_once(PolicyScores(points, -self._left_on_rows(lines)))

    def _left(self, name: str, trees: RowNumbers) -> Numbers:
        totals = self._case.totals[name]
        return share(totals.free[trees] - self._case.requested[name], totals.largest)

    def _left_on_rows(self, lines: Block) -> Numbers:
        left = []
        for at, slot in enumerate(self._case.slots):
            for name, amount in slot.resources.items():
                free, _ = self._case.free_and_capacity(name, lines[:, at])
                left.append(share(free - amount, self._case.totals[name].largest))
        return mean(left)
