"""fragmentation: the least growth of what typical requests could not use (FGD).

The fragmentation of a tree for a request is the free device units that it could not use there:
all of them if it does not run there, else those on providers with too little left; the expected
one weighs typical requests by how often they come. A whole device counts 1000. With d for the
expected fragmentation before less that after, points are floor(100 / (1 + exp(-d / 1000))); in a
tree the larger d comes first. Points are coarse on purpose: of trees that are nearly equal the
first is filled up. The measure is that of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import cache_entry
from dovetail.engine.rank.demand import demand_of
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.policies.policy import PolicyCase, PolicyScores


class Fragmentation:
    is_even = False

    def __init__(self, case: PolicyCase) -> None:
        self._case = case
        self._demand = demand = demand_of(case.snapshot, case.typical)
        self._losses: Losses = cache_entry(
            case.snapshot,
            ("fragmentation", demand),
            lambda: Losses(demand.units_lost, demand.whole, demand.weight),
        )

    @property
    def basis(self) -> Hashable:
        return self._demand

    def score(self, lines: Block) -> PolicyScores:
        drops = self._losses.drops(self._case, self._demand.classes, lines)
        return PolicyScores(self._losses.points(drops), drops)
