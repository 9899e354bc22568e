"""Loss of trees by a claim: the drop of a measure kept per tree, made anew where trees changed.

The policies `fragmentation` and `scarcity` differ in the measure only.

A loss is counted in device units (a whole device has 1000) times the weight of all typical
requests, so that everything is whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.cache import with_zeros
from dovetail.engine.rank.candidates import distinct_candidates, trees_of
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase
from dovetail.engine.rank.trees import CELLS_PER_STEP, DEVICE, Trees, lay_out, slices_of_trees
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

Measure = Callable[[Trees], Numbers]
"""The loss of each tree."""

FEW_TREES = 64
"""So many are measured faster than compared."""

BILLION = 10**9
STEPS = tuple(round(DEVICE * log(points / (100 - points)) * BILLION) for points in range(1, 100))
"""The drop at which each further point begins, in billionths: whole numbers, so that the same drop
has the same points everywhere."""


class Losses:
    """By number of the tree: its loss as it is."""

    def __init__(
        self,
        measure: Measure,
        cells: Callable[[int], int],
        whole: Mapping[str, int],
        weight: int,
    ) -> None:
        """`cells`: how much is looked at to measure a tree of so many rows.

        `whole`: how many units of a class make up its largest device.
        """
        self._measure, self._cells, self._whole = measure, cells, whole
        self._steps = np.array([-(-step * max(weight, 1) // BILLION) for step in STEPS])
        self._versions: Numbers = np.zeros(0, np.int64)
        self._lost: Numbers = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self._versions.nbytes + self._lost.nbytes

    def points(self, drops: Numbers) -> Numbers:
        """floor(100 / (1 + exp(-d / 1000))) for a drop of d units."""
        return self._steps.searchsorted(drops, side="right")

    def drops(self, case: PolicyCase, classes: list[str], lines: Block) -> Work[Numbers]:
        """By how much each candidate lowers the loss of its tree."""
        snapshot = case.snapshot
        home, alike = trees_of(snapshot, lines), None
        if len(lines) > FEW_TREES:
            samples, alike = distinct_candidates(snapshot, case.slots, classes, lines, home)
            lines, home = lines[samples], home[samples]
        found: Numbers = np.empty(len(lines), np.int64)
        # Before and after a claim a row has as many cells as classes.
        for some in slices_of_trees(snapshot, home, lambda rows: 2 * rows * len(classes)):
            found[some] = yield from self._drops(case, classes, lines[some], home[some])
            if some.stop < len(lines):
                yield
        return found if alike is None else found[alike]

    def _drops(
        self, case: PolicyCase, classes: list[str], lines: Block, home: RowNumbers
    ) -> Work[Numbers]:
        snapshot = case.snapshot
        stale = self._stale(snapshot, home)
        # Trees as they would be and as they are are measured in one go: a measure has many steps.
        states = lay_out(snapshot, np.concatenate((home, stale)), classes, self._whole)
        states.take(lines, case.slots)
        lost = yield from self._measure_distinct(states)
        self._lost[stale] = lost[len(home) :]
        self._versions[stale] = snapshot.tree_version.values[stale]
        found: Numbers = self._lost.take(home) - lost[: len(home)]
        return found

    def _measure_distinct(self, states: Trees) -> Work[Numbers]:
        if len(states) <= FEW_TREES:
            return (yield from self._measure_in_steps(states))
        kinds, which = states.distinct()
        lost = yield from self._measure_in_steps(kinds)
        found: Numbers = lost[which]
        return found

    def _measure_in_steps(self, states: Trees) -> Work[Numbers]:
        if len(states) * self._cells(len(states.present)) <= CELLS_PER_STEP:
            return self._measure(states)
        found = []
        for some in states.in_slices(self._cells):
            found.append(self._measure(some))
            yield
        return np.concatenate(found)

    def _stale(self, snapshot: Snapshot, home: RowNumbers) -> RowNumbers:
        """Those of the trees that changed, each once."""
        missing = snapshot.tree_version.size - len(self._versions)
        if missing:
            self._versions = with_zeros(self._versions, missing)
            self._lost = with_zeros(self._lost, missing)
        changed = self._versions.take(home) != snapshot.tree_version.values.take(home)
        # Told apart as numbers of Python: `np.unique` takes several times as long for a few.
        return np.array(sorted({*home.compress(changed).tolist()}), np.int32)
