"""spread: the tree that is emptiest afterwards, in percent of its own capacity."""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import at_once
from dovetail.engine.rank.policies.policy import POINT, PolicyCase, PolicyScores
from dovetail.engine.rank.policies.utilisation import Utilisation
from dovetail.engine.work import Work


class Spread:
    is_even = True
    basis: Hashable = None

    def __init__(self, case: PolicyCase) -> None:
        self._filling = Utilisation(case)

    def score(self, lines: Block) -> Work[PolicyScores]:
        points = self._filling.of_trees(lines) // POINT
        return at_once(PolicyScores(points, self._filling.of_rows(lines)))
