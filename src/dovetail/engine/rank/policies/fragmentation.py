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
from dovetail.engine.rank.demand import TypicalDemand, demand_in_steps
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.policies.policy import PolicyCase, PolicyScores
from dovetail.engine.work import Work


class Fragmentation:
    is_even = False

    def __init__(self, case: PolicyCase, demand: TypicalDemand) -> None:
        self._case, self._demand = case, demand
        self._losses: Losses = cache_entry(
            case.snapshot,
            ("fragmentation", demand),
            lambda: Losses(demand.units_lost, demand.cells, demand.whole, demand.weight),
        )

    @classmethod
    def in_steps(cls, case: PolicyCase) -> Work[Fragmentation]:
        return cls(case, (yield from demand_in_steps(case.snapshot, case.typical)))

    @property
    def basis(self) -> Hashable:
        return self._demand

    def score(self, lines: Block) -> Work[PolicyScores]:
        drops = yield from self._losses.drops(self._case, self._demand.classes, lines)
        return PolicyScores(self._losses.points(drops), drops)
