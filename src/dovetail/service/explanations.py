"""Explains why a request fits or does not, within a budget of time; REST calls it.

What it returns knows providers by row: `Diagnosis.explanation` makes of it what people read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import (
    Diagnosis,
    HostFindings,
    RelaxedRequest,
    findings,
    funnel,
    how_many,
    nearest,
    relaxations,
)
from dovetail.service.time_budget import OutOfTime, TimeBudget
from dovetail.telemetry.phases import phase

SHOWN_HOSTS = 5
RELAXING_SHARE = 0.5
"""The share of the time that looking for changes may take; an explanation without is one still."""


class TooLong(DovetailError):
    """Counting alone took all the time there was."""


async def diagnose(
    snapshot: Snapshot, request: Request, budget_seconds: float, host: str | None = None
) -> Diagnosis:
    """`host`: the UUID of a provider; only its tree is looked at closely then. Raises TooLong."""
    with phase("explain"):
        return await within_budget(snapshot, request, budget_seconds, host)


async def within_budget(
    snapshot: Snapshot, request: Request, budget_seconds: float, host: str | None
) -> Diagnosis:
    budget = TimeBudget(budget_seconds)
    try:
        stages = await budget.run(funnel(snapshot, request))
        fitting = stages[-1].left
        could = 0 if fitting else await budget.run(how_many(snapshot.without_usage(), request))
        shown = shown_trees(snapshot, request, host, fitting)
        looked_at = [await look_closely(budget, snapshot, request, tree) for tree in shown]
    except OutOfTime as error:
        raise TooLong(
            f"This could not be explained in {budget_seconds:g} seconds; narrow the request."
        ) from error
    share = budget_seconds * RELAXING_SHARE
    return Diagnosis(
        hosts=int((snapshot.tree_size.values > 0).sum()),
        fitting=fitting,
        could=could,
        funnel=stages,
        nearest=looked_at,
        relaxations=[] if fitting else await relax(snapshot, request, share),
        uuids=uuids_of(snapshot, looked_at),
    )


def shown_trees(
    snapshot: Snapshot, request: Request, host: str | None, fitting: int
) -> Sequence[int]:
    if host is not None:
        tree = snapshot.tree_with(host)
        return () if tree is None else (tree,)
    return () if fitting else nearest(snapshot, request, SHOWN_HOSTS)


async def look_closely(
    budget: TimeBudget, snapshot: Snapshot, request: Request, tree: int
) -> HostFindings:
    found = await budget.run(findings(snapshot, request, tree))
    return HostFindings(int(snapshot.tree_start.values[tree]), found)


async def relax(
    snapshot: Snapshot, request: Request, budget_seconds: float
) -> list[RelaxedRequest]:
    """As many as are found in time, those that help most hosts first."""
    found: list[RelaxedRequest] = []
    with contextlib.suppress(OutOfTime):
        await TimeBudget(budget_seconds).run(relaxations(snapshot, request, found))
    return sorted(found, key=lambda relaxation: -relaxation.trees)


def uuids_of(snapshot: Snapshot, hosts: Sequence[HostFindings]) -> dict[int, str]:
    rows = {host.root for host in hosts}
    rows |= {one.row for host in hosts for one in host.findings if one.row is not None}
    return {row: snapshot.uuid(row) for row in rows}
