"""first-fit: the order of the trees, nothing else. The default, and it costs nothing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from dovetail.engine.rank.policy import Case, Numbers
from dovetail.engine.turns import Block


class FirstFit:
    even = True
    basis: Hashable = None

    def __init__(self, case: Case) -> None:
        """There is nothing to look at."""

    def points(self, lines: Block) -> Numbers:
        return np.zeros(len(lines), np.int64)

    def nuance(self, lines: Block) -> Numbers:
        return np.zeros(len(lines), np.int64)
