"""spread: the tree that is emptiest afterwards, in percent of its own capacity."""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import POINT, PolicyCase, PolicyScores
from dovetail.engine.rank.utilisation import Utilisation


class Spread:
    is_even = True
    basis: Hashable = None

    def __init__(self, case: PolicyCase) -> None:
        self._filling = Utilisation(case)

    def score(self, lines: Block) -> PolicyScores:
        return PolicyScores(self._filling.of_trees(lines) // POINT, self._filling.of_rows(lines))
