"""pack: the tree that is fullest afterwards, in percent of its own capacity."""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import at_once
from dovetail.engine.rank.policies.policy import MILLION, POINT, PolicyCase, PolicyScores
from dovetail.engine.rank.policies.utilisation import Utilisation
from dovetail.engine.work import Work


class Pack:
    is_even = True
    basis: Hashable = None

    def __init__(self, case: PolicyCase) -> None:
        self._filling = Utilisation(case)

    def score(self, lines: Block) -> Work[PolicyScores]:
        points = (MILLION - self._filling.of_trees(lines)) // POINT
        return at_once(PolicyScores(points, MILLION - self._filling.of_rows(lines)))
