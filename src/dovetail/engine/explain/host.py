"""What one tree has and lacks: a finding for each constraint of the request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dovetail.core.constraints import RELATIONS, Constraint, constraints, only
from dovetail.core.explanation import Reason
from dovetail.core.inventory import Supply
from dovetail.core.request import Request
from dovetail.engine.explain.conditions import Conditions
from dovetail.engine.explain.fits import Work, any_fits
from dovetail.engine.snapshot import Snapshot


class ProviderFinding(msgspec.Struct, frozen=True):
    """A constraint, whether the tree meets it, and the row that comes nearest to it."""

    constraint: Constraint
    met: bool
    ever: bool
    """Whether it could be met if nothing were in use."""
    row: int | None = None
    supply: Supply | None = None
    """Of a resource class."""

    @property
    def reason(self) -> Reason:
        """Enough may be free, but not to be had in such an amount."""
        supply = self.supply
        if supply is not None and supply.capacity and not supply.allows(self.constraint.amount):
            return Reason.UNITS
        return self.constraint.reason


class HostFindings(msgspec.Struct, frozen=True):
    """What one tree has and lacks."""

    root: int
    """The row of its root."""
    findings: Sequence[ProviderFinding]


def findings(snapshot: Snapshot, request: Request, tree: int) -> Work[list[ProviderFinding]]:
    """Of every constraint in order; relations only up to the first that cannot be kept."""
    demanded = constraints(request)
    conditions = Conditions(snapshot, tree)
    found = [
        of_row(conditions, one, [one], conditions.root)
        for one in demanded
        if one.group is None and one.reason not in RELATIONS
    ]
    for group in request.groups:
        mine = [
            one for one in demanded if one.group == group.suffix and one.reason not in RELATIONS
        ]
        found += of_one_provider(conditions, mine) if group.suffix else of_several(conditions, mine)
        yield
    if all(finding.met for finding in found):
        found += yield from of_relations(snapshot, request, tree)
    return found


def of_row(
    conditions: Conditions, constraint: Constraint, group: list[Constraint], row: int
) -> ProviderFinding:
    met = conditions.meets(row, constraint, group)
    if constraint.reason is not Reason.AMOUNT:
        return ProviderFinding(constraint, met, met, row)
    supply = conditions.supply(row, constraint.name)
    ever = supply.capacity >= constraint.amount and supply.allows(constraint.amount)
    return ProviderFinding(constraint, met, ever, row, supply)


def of_one_provider(conditions: Conditions, group: list[Constraint]) -> list[ProviderFinding]:
    """The findings of the provider that comes nearest to meeting them all."""
    row = closest(conditions, group, group)
    return [of_row(conditions, one, group, row) for one in group]


def of_several(conditions: Conditions, group: list[Constraint]) -> list[ProviderFinding]:
    """Each resource class may come from another provider; all of these have to meet the rest."""
    amounts = [one for one in group if one.reason is Reason.AMOUNT]
    rest = [one for one in group if one.reason is not Reason.AMOUNT]
    rows = {one: closest(conditions, [one, *rest], group) for one in amounts}
    found = [of_row(conditions, one, group, row) for one, row in rows.items()]
    for one in rest:
        each = [of_row(conditions, one, group, row) for row in rows.values()]
        found.append(min(each, key=lambda finding: finding.met))
    return found


def closest(conditions: Conditions, asked: list[Constraint], group: list[Constraint]) -> int:
    """The row that meets most of what is asked and then lacks least; the first of equals."""

    def distance(row: int) -> tuple[int, float]:
        missed = sum(not conditions.meets(row, one, group) for one in asked)
        return missed, sum(shortage(conditions, row, one) for one in asked)

    best: int = min(conditions.rows, key=distance)
    return best


def shortage(conditions: Conditions, row: int, constraint: Constraint) -> float:
    """The share of the amount that is not there."""
    if constraint.reason is not Reason.AMOUNT:
        return 0
    free = conditions.supply(row, constraint.name).free
    return max(0, constraint.amount - max(free, 0)) / constraint.amount


def of_relations(snapshot: Snapshot, request: Request, tree: int) -> Work[list[ProviderFinding]]:
    demanded = constraints(request)
    among = np.array([tree], np.int32)
    found = []
    for count, one in enumerate(demanded, 1):
        if one.reason not in RELATIONS:
            continue
        partial = only(request, demanded[:count])
        met = yield from any_fits(snapshot, partial, among)
        ever = met or (yield from any_fits(snapshot.without_usage(), partial, among))
        found.append(ProviderFinding(one, met, ever))
        if not met:
            break
    return found
