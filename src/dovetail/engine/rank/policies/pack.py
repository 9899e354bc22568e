"""pack: the tree that is fullest afterwards, in percent of its own capacity."""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import MILLION, POINT, Case, Judgement
from dovetail.engine.rank.utilisation import Filling


class Pack:
    even = True
    basis: Hashable = None

    def __init__(self, case: Case) -> None:
        self._filling = Filling(case)

    def judge(self, lines: Block) -> Judgement:
        points = (MILLION - self._filling.of_trees(lines)) // POINT
        return Judgement(points, MILLION - self._filling.of_rows(lines))
