"""The catalogue of policies."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.rank.policies.best_fit import BestFit
from dovetail.engine.rank.policies.first_fit import FirstFit
from dovetail.engine.rank.policies.fragmentation import Fragmentation
from dovetail.engine.rank.policies.pack import Pack
from dovetail.engine.rank.policies.policy import PolicyCase, RankingPolicy
from dovetail.engine.rank.policies.scarcity import Scarcity
from dovetail.engine.rank.policies.spread import Spread
from dovetail.engine.rank.ranking import FIRST_FIT

POLICIES: dict[str, Callable[[PolicyCase], RankingPolicy]] = {
    FIRST_FIT: FirstFit,
    "best-fit": BestFit,
    "spread": Spread,
    "pack": Pack,
    "fragmentation": Fragmentation,
    "scarcity": Scarcity,
}
