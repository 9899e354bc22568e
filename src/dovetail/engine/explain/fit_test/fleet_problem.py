"""Fit tests of a whole fleet: its trees as a request sees them, one for all that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.core.constraints import with_amount
from dovetail.core.explanation import Reason
from dovetail.core.request import Request
from dovetail.engine.explain.fit_test.alike import BETWEEN_ROWS, Kind, TreeViews
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.demands import Demands
from dovetail.engine.explain.fit_test.distance import Counts, fewest_changes
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.tree_problem import TreeProblem
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot


class FleetProblem:
    """The trees of a snapshot as a request sees them: kinds, nearest first."""

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self.snapshot = snapshot
        self.demands = Demands(request)
        self.conditions = Conditions(snapshot, self.demands)
        self.classes = sorted({n for group in self.demands.groups for n in group.amounts})
        self.distance: Counts = np.empty(0, np.int64)
        """By tree: at least so many constraints have to change."""
        self.kinds: dict[Kind, list[int]] = {}
        self._problems: dict[int, TreeProblem] = {}

    def look(self) -> Work[None]:
        """Sort the trees; call it before anything else."""
        self.distance = yield from fewest_changes(self.conditions)
        trees: RowNumbers = np.flatnonzero(self.snapshot.tree_size.values > 0).astype(np.int32)
        order = np.lexsort((self.snapshot.tree_root_id.values[trees], self.distance[trees]))
        # Of amounts that all change one is lowered, to whatever can be had (`conflicts`).
        lowered = [
            with_amount(one, -one.amount)
            for one in self.demands.constraints
            if one.reason is Reason.AMOUNT
        ]
        seen = [*self.demands.constraints, *lowered]
        for one in seen:
            if one.reason not in BETWEEN_ROWS:
                self.conditions.met(one)
                yield
        views = TreeViews(self.conditions, seen)
        self.kinds = yield from views.kinds(trees[order])

    def problem(self, tree: int) -> TreeProblem:
        found = self._problems.get(tree)
        if found is None:
            found = self._problems[tree] = TreeProblem(self.conditions, tree, self.classes)
        return found

    def within(self, changes: int) -> Iterator[TreeProblem]:
        """One tree of each kind that may fit after so many changes."""
        for alike in self.kinds.values():
            if self.distance[alike[0]] <= changes:
                yield self.problem(alike[0])
