"""Why a request fits or does not: one explanation for REST, command line and all that follow."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import (
    Finding,
    Relaxation,
    Step,
    findings,
    funnel,
    how_many,
    nearest,
    relaxations,
)
from dovetail.service.time_budget import OutOfTime, Pace
from dovetail.telemetry.phases import phase

FITS, NOT_NOW, NEVER = "fits", "not_now", "never"
SHOWN_HOSTS = 5
RELAXING = 0.5
"""The share of the time that looking for changes may take; an explanation without is one still."""


class TooLong(DovetailError):
    """Counting alone took all the time there was."""


class Host(msgspec.Struct, frozen=True):
    """What one tree has and lacks."""

    root: int
    findings: Sequence[Finding]

    @property
    def fits(self) -> bool:
        return all(finding.met for finding in self.findings)


class Explanation(msgspec.Struct, frozen=True):
    verdict: str
    hosts: int
    fitting: int
    could: int
    """Hosts that fitted if nothing were in use; told only when none fits."""
    funnel: Sequence[Step]
    nearest: Sequence[Host]
    relaxations: Sequence[Relaxation]
    uuids: dict[int, str]
    """Of the rows that are mentioned."""


async def explain(
    snapshot: Snapshot, request: Request, budget_seconds: float, host: str | None = None
) -> Explanation:
    """`host`: the UUID of a provider; only its tree is looked at closely then."""
    with phase("explain"):
        return await explained(snapshot, request, budget_seconds, host)


async def explained(
    snapshot: Snapshot, request: Request, budget_seconds: float, host: str | None
) -> Explanation:
    pace = Pace(budget_seconds)
    try:
        steps = await pace.finished(funnel(snapshot, request))
        fitting = steps[-1].left
        could = 0 if fitting else await pace.finished(how_many(snapshot.emptied(), request))
        shown = shown_trees(snapshot, request, host, fitting)
        looked_at = [await looked_at_closely(pace, snapshot, request, tree) for tree in shown]
    except OutOfTime as error:
        raise TooLong(
            f"This could not be explained in {budget_seconds:g} seconds; narrow the request."
        ) from error
    changes = [] if fitting else await found_changes(snapshot, request, budget_seconds * RELAXING)
    return Explanation(
        verdict=FITS if fitting else NOT_NOW if could else NEVER,
        hosts=int((snapshot.tree_size.values > 0).sum()),
        fitting=fitting,
        could=could,
        funnel=steps,
        nearest=looked_at,
        relaxations=changes,
        uuids=uuids_of(snapshot, looked_at),
    )


def shown_trees(
    snapshot: Snapshot, request: Request, host: str | None, fitting: int
) -> Sequence[int]:
    if host is not None:
        tree = snapshot.tree_with(host)
        return () if tree is None else (tree,)
    return () if fitting else nearest(snapshot, request, SHOWN_HOSTS)


async def looked_at_closely(pace: Pace, snapshot: Snapshot, request: Request, tree: int) -> Host:
    found = await pace.finished(findings(snapshot, request, tree))
    return Host(int(snapshot.tree_start.values[tree]), found)


async def found_changes(
    snapshot: Snapshot, request: Request, budget_seconds: float
) -> list[Relaxation]:
    """As many as are found in time, those that help most hosts first."""
    found: list[Relaxation] = []
    with contextlib.suppress(OutOfTime):
        await Pace(budget_seconds).finished(relaxations(snapshot, request, found))
    return sorted(found, key=lambda relaxation: -relaxation.trees)


def uuids_of(snapshot: Snapshot, hosts: Sequence[Host]) -> dict[int, str]:
    rows = {host.root for host in hosts}
    rows |= {one.row for host in hosts for one in host.findings if one.row is not None}
    return {row: snapshot.uuid(row) for row in rows}
