"""What typical requests cannot use of each tree, brought up to date where trees changed."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

import numpy as np

from dovetail.engine.columns import Rows
from dovetail.engine.rank.demand import DEVICE, Demand
from dovetail.engine.rank.notes import longer
from dovetail.engine.rank.policy import Numbers
from dovetail.engine.rank.trees import Trees
from dovetail.engine.snapshot import Snapshot

BILLION = 10**9
STEPS = tuple(round(DEVICE * log(points / (100 - points)) * BILLION) for points in range(1, 100))
"""The drop at which each further point begins, in billionths: whole numbers, so that the same drop
has the same points everywhere."""


class Losses:
    """By number of the tree: its fragmentation as it is, times the weight of all requests."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.steps = np.array([-(-step * max(demand.weight, 1) // BILLION) for step in STEPS])
        """The same as drops times the weight of all requests."""
        self._versions: Numbers = np.zeros(0, np.int64)
        self._lost: Numbers = np.zeros(0, np.int64)
        self._whole: Mapping[str, int] = {}

    def of(self, snapshot: Snapshot, trees: Rows, now: Trees, whole: Mapping[str, int]) -> Numbers:
        """The losses of these trees, which `now` shows."""
        missing = snapshot.tree_version.size - len(self._versions)
        if missing:
            self._versions = longer(self._versions, missing)
            self._lost = longer(self._lost, missing)
        if whole != self._whole:
            self._versions[:], self._whole = 0, whole
        versions = snapshot.tree_version.values[trees]
        stale = np.flatnonzero(self._versions[trees] != versions)
        if len(stale):
            self._versions[trees[stale]] = versions[stale]
            self._lost[trees[stale]] = self.demand.lost(now.some(stale))
        return self._lost[trees]
