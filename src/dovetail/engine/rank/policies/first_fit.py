"""first-fit: the order of the trees, nothing else. The default, and it costs nothing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import Case, Judgement


class FirstFit:
    even = True
    basis: Hashable = None

    def __init__(self, case: Case) -> None:
        """There is nothing to look at."""

    def judge(self, lines: Block) -> Judgement:
        nothing = np.zeros(len(lines), np.int64)
        return Judgement(nothing, nothing)
