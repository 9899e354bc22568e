"""spread: the tree that is emptiest afterwards, in percent of its own capacity."""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import POINT, Case, Judgement
from dovetail.engine.rank.utilisation import Filling


class Spread:
    even = True
    basis: Hashable = None

    def __init__(self, case: Case) -> None:
        self._filling = Filling(case)

    def judge(self, lines: Block) -> Judgement:
        return Judgement(self._filling.of_trees(lines) // POINT, self._filling.of_rows(lines))
