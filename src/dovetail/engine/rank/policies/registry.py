"""The catalogue of policies."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.rank.cache import at_once
from dovetail.engine.rank.policies.best_fit import BestFit
from dovetail.engine.rank.policies.first_fit import FirstFit
from dovetail.engine.rank.policies.fragmentation import Fragmentation
from dovetail.engine.rank.policies.pack import Pack
from dovetail.engine.rank.policies.policy import PolicyCase, RankingPolicy
from dovetail.engine.rank.policies.scarcity import Scarcity
from dovetail.engine.rank.policies.spread import Spread
from dovetail.engine.rank.ranking import FIRST_FIT
from dovetail.engine.work import Work

PolicyMaker = Callable[[PolicyCase], Work[RankingPolicy]]
"""In steps: some look at the whole fleet first."""


def by_totals(make: Callable[[PolicyCase], RankingPolicy]) -> PolicyMaker:
    """For policies that look at totals of trees."""

    def in_steps(case: PolicyCase) -> Work[RankingPolicy]:
        yield from case.add_up()
        return make(case)

    return in_steps


POLICIES: dict[str, PolicyMaker] = {
    FIRST_FIT: lambda case: at_once(FirstFit(case)),
    "best-fit": by_totals(BestFit),
    "spread": by_totals(Spread),
    "pack": by_totals(Pack),
    "fragmentation": Fragmentation.in_steps,
    "scarcity": Scarcity.in_steps,
}
