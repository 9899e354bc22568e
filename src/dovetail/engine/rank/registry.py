"""The catalogue of policies."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.rank.best_fit import BestFit
from dovetail.engine.rank.first_fit import FirstFit
from dovetail.engine.rank.fragmentation import Fragmentation
from dovetail.engine.rank.pack import Pack
from dovetail.engine.rank.policy import Case, Policy
from dovetail.engine.rank.ranking import FIRST_FIT
from dovetail.engine.rank.scarcity import Scarcity
from dovetail.engine.rank.spread import Spread

POLICIES: dict[str, Callable[[Case], Policy]] = {
    FIRST_FIT: FirstFit,
    "best-fit": BestFit,
    "spread": Spread,
    "pack": Pack,
    "fragmentation": Fragmentation,
    "scarcity": Scarcity,
}
