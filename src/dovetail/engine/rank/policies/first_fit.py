"""first-fit: the order of the trees, nothing else. The default, and it costs nothing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import at_once
from dovetail.engine.rank.policies.policy import PolicyCase, PolicyScores
from dovetail.engine.work import Work


class FirstFit:
    is_even = True
    basis: Hashable = None

    def __init__(self, case: PolicyCase) -> None:
        """There is nothing to look at."""

    def score(self, lines: Block) -> Work[PolicyScores]:
        nothing = np.zeros(len(lines), np.int64)
        return at_once(PolicyScores(nothing, nothing))
