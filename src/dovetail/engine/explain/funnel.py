"""How many trees are left after each constraint of a request, in order.

Constraints of single providers come first: after each of them a tree is left if for every part of
the request it has some provider that meets what was demanded so far. Then come the relations, and
a tree is left if there is a choice of providers that keeps all of them so far. A constraint of a
provider costs a few vector operations, whatever came before it; a relation costs a fit test of the
fleet.
"""

from __future__ import annotations

import numpy as np

from dovetail.core import explanation_text
from dovetail.core.columns import Mask
from dovetail.core.constraints import RELATIONS, Constraint, only
from dovetail.core.explanation import Reason, Stage
from dovetail.core.request import Request
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.demands import Demands
from dovetail.engine.explain.fit_test.fits import Work, how_many
from dovetail.engine.snapshot import Snapshot


def funnel(snapshot: Snapshot, request: Request) -> Work[list[Stage]]:
    demands = Demands(request)
    narrowing = Narrowing(Conditions(snapshot, demands))
    stages: list[Stage] = []
    left = -1
    for at, constraint in enumerate(demands.constraints):
        if left and constraint.reason in RELATIONS:
            left = yield from how_many(snapshot, only(request, demands.constraints[: at + 1]))
        elif left:
            left = narrowing.trees_left(at)
        stages.append(stage(constraint, left))
        yield
    return stages


def stage(constraint: Constraint, left: int) -> Stage:
    return Stage(
        reason=constraint.reason,
        group=constraint.group,
        constraint=constraint.text,
        left=left,
        words=explanation_text.constraint_text(constraint),
    )


class SlotRows:
    """The rows that meet what was demanded of a slot so far.

    Of the aggregates of the unsuffixed group a root may speak for its tree, so what a row is a
    member of by itself and through its root is kept apart.
    """

    def __init__(self, conditions: Conditions) -> None:
        snapshot = conditions.snapshot
        self._conditions, self._trees = conditions, snapshot.tree.values
        self._root_of = snapshot.tree_start.values[self._trees]
        self._own: Mask = self._trees >= 0
        self._by_root: Mask = self._own.copy()
        """Where the root speaks; the same as `_own` but for aggregates."""
        trees, rows = conditions.pairs
        self._pair_trees, self._pair_rows = trees, rows
        self._shared: Mask = np.ones(len(rows), np.bool_)

    def demand(self, at: int) -> None:
        constraint, mask = self._conditions.demands.constraints[at], self._conditions.mask(at)
        roots = self._conditions.snapshot.tree_start.values
        shared = mask[self._pair_rows]
        own = by_root = mask
        if not constraint.group and constraint.reason is Reason.AGGREGATE:
            by_root = mask[self._root_of]
        elif not constraint.group and constraint.reason is Reason.FORBIDDEN_AGGREGATE:
            own = by_root = mask & mask[self._root_of]
            shared = shared & mask[roots[self._pair_trees]]
        elif not constraint.group and constraint.reason is Reason.IN_TREE:
            shared = np.zeros_like(shared)
        self._own &= own
        self._by_root &= by_root
        self._shared &= shared

    def trees(self) -> Mask:
        """By tree: whether some row is left for it."""
        found = np.zeros(self._conditions.snapshot.tree_size.size, np.bool_)
        found[self._trees[self._own | self._by_root]] = True
        found[self._pair_trees[self._shared]] = True
        return found


class Narrowing:
    """Trees that are left after more and more constraints of single providers."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._group: str | None = None
        self._slots: dict[str, SlotRows] = {}
        """Of the group that constraints are of now: by class, of the unsuffixed group."""
        sizes = conditions.snapshot.tree_size.values
        self._before: Mask = sizes > 0
        """Trees left after the groups before this one."""

    def trees_left(self, at: int) -> int:
        one = self._conditions.demands.constraints[at]
        if one.group is None:
            roots = self._conditions.snapshot.tree_start.values
            self._before &= self._conditions.mask(at)[roots]
            return int(self._before.sum())
        if one.group != self._group:
            self._before = self._left()
            self._group, self._slots = one.group, {}
        if one.group or one.reason is Reason.AMOUNT:
            name = "" if one.group else one.name
            self._slots.setdefault(name, SlotRows(self._conditions)).demand(at)
        else:
            for slot in self._slots.values():
                slot.demand(at)
        return int(self._left().sum())

    def _left(self) -> Mask:
        left = self._before.copy()
        for slot in self._slots.values():
            left &= slot.trees()
        return left
