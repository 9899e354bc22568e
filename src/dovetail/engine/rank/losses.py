"""What claims cost a tree: the drop of a loss that is kept per tree and made anew where it changed.

A loss is counted in device units (a whole device has 1000) times the weight of all typical
requests, so that everything is whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log

import numpy as np

from dovetail.engine.columns import Rows
from dovetail.engine.rank.alike import counted, distinct
from dovetail.engine.rank.homes import homes
from dovetail.engine.rank.notes import longer
from dovetail.engine.rank.policy import Case, Numbers
from dovetail.engine.rank.trees import DEVICE, Trees, lay_out
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.turns import Block

Measure = Callable[[Trees], Numbers]
"""The loss of each tree."""

FEW = 64
"""So many are measured faster than compared."""

BILLION = 10**9
STEPS = tuple(round(DEVICE * log(points / (100 - points)) * BILLION) for points in range(1, 100))
"""The drop at which each further point begins, in billionths: whole numbers, so that the same drop
has the same points everywhere."""


class Losses:
    """By number of the tree: its loss as it is."""

    def __init__(self, measure: Measure, whole: Mapping[str, int], weight: int) -> None:
        """`whole`: how many units of a class make up its largest device."""
        self._measure, self._whole = measure, whole
        self._steps = np.array([-(-step * max(weight, 1) // BILLION) for step in STEPS])
        self._versions: Numbers = np.zeros(0, np.int64)
        self._lost: Numbers = np.zeros(0, np.int64)

    def points(self, drops: Numbers) -> Numbers:
        """floor(100 / (1 + exp(-d / 1000))) for a drop of d units."""
        return self._steps.searchsorted(drops, side="right")

    def drops(self, case: Case, classes: list[str], lines: Block) -> Numbers:
        """By how much each candidate lowers the loss of its tree."""
        snapshot = case.snapshot
        home = homes(snapshot, lines)
        samples, alike = distinct(case, lines, home)
        trees, which = counted(home[samples])
        stale = self._stale(snapshot, trees)
        now = lay_out(snapshot, trees, classes, self._whole)
        # Trees as they are and as they would be are measured in one go: a measure has many steps.
        states = now.after(np.concatenate((which, stale)), lines[samples], case.slots)
        after, fresh = np.split(self._measured(states), [len(which)])
        self._lost[trees[stale]] = fresh
        self._versions[trees[stale]] = snapshot.tree_version.values[trees[stale]]
        found: Numbers = (self._lost[trees[which]] - after)[alike]
        return found

    def _measured(self, states: Trees) -> Numbers:
        if len(states) <= FEW:
            return self._measure(states)
        kinds, which = states.alike()
        found: Numbers = self._measure(kinds)[which]
        return found

    def _stale(self, snapshot: Snapshot, trees: Rows) -> Numbers:
        """Where in `trees` those are that changed."""
        missing = snapshot.tree_version.size - len(self._versions)
        if missing:
            self._versions = longer(self._versions, missing)
            self._lost = longer(self._lost, missing)
        changed = self._versions[trees] != snapshot.tree_version.values[trees]
        found: Numbers = changed.nonzero()[0]
        return found
