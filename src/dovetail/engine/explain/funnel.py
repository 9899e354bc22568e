"""How many trees are left after each constraint of a request, in order.

Constraints of single providers come first: after each of them a tree is left if for every part of
the request it has some provider that meets what was demanded so far. Then come the relations, and
a tree is left if there is a choice of providers that keeps all of them so far.
"""

from __future__ import annotations

from dovetail.core import explanation_text
from dovetail.core.constraints import RELATIONS, Constraint, constraints, only
from dovetail.core.explanation import Stage
from dovetail.core.request import Request
from dovetail.engine.explain.fits import Work, how_many
from dovetail.engine.feasible import feasible_trees, slots_of
from dovetail.engine.snapshot import Snapshot


def funnel(snapshot: Snapshot, request: Request) -> Work[list[Stage]]:
    demanded = constraints(request)
    stages: list[Stage] = []
    left = -1
    for count, constraint in enumerate(demanded, 1):
        if left:
            left = yield from trees_left(snapshot, request, demanded[:count])
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


def trees_left(snapshot: Snapshot, request: Request, demanded: tuple[Constraint, ...]) -> Work[int]:
    partial = only(request, demanded)
    if demanded[-1].reason in RELATIONS:
        return (yield from how_many(snapshot, partial))
    return len(feasible_trees(snapshot, partial, slots_of(snapshot, partial)))
