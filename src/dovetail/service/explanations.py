"""Explains why a request fits or does not, within a budget of time; REST calls it.

What it returns knows providers by row: `Diagnosis.explanation` makes of it what people read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import (
    Diagnosis,
    FleetProblem,
    HostFindings,
    RelaxedRequest,
    Work,
    fitting,
    funnel,
    host_findings,
    nearest,
    relaxations_in,
)
from dovetail.engine.moves import (
    HeldRow,
    Holder,
    LeavingSearch,
    PlannedMoves,
    Requests,
    holders_of,
    planned_moves,
)
from dovetail.service.decisions import Allocations, queries_followed
from dovetail.service.time_budget import OutOfTime, TimeBudget
from dovetail.telemetry.phases import phase

SHOWN_HOSTS = 5
SHOWN_PLANS = 3
RELAXING_SHARE = 0.5
"""The share of the time that looking for changes may take; an explanation without is one still."""
LEAVING_SHARE = 0.25
"""The share that looking for the smallest sets of consumers may take, and then for any."""
REFUSAL_SECONDS = 0.25
"""For the explanation of a claim that is refused: whoever claims waits for the answer."""
MOST_TREES = 1024
"""Hosts whose consumers are read to find out whom to move."""


class HolderRecords(Protocol):
    """What is on record about consumers; a door reads it from the ledger."""

    async def holders(self, root_ids: Sequence[int]) -> Sequence[HeldRow]:
        """From the ids of roots: all that those consumers hold who hold something there."""

    async def decisions(self, consumers: Sequence[str]) -> Sequence[tuple[str, str]]:
        """Consumer and document of the decisions about these, newest first."""

    async def request_of(self, query: str) -> Request | None:
        """The request of a query on record; None if it is understood no more."""


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
    fleet = FleetProblem(snapshot, request)
    looked_at: list[HostFindings] = []
    could: list[int] = []
    cut_short = False
    try:
        stages = await budget.run(funnel(snapshot, request))
        fits = stages[-1].left
        if not fits:
            could = await budget.run(trees_fitting(snapshot.without_usage(), request))
    except OutOfTime as error:
        raise TooLong(
            f"This could not be explained in {budget_seconds:g} seconds; narrow the request."
        ) from error
    found: list[RelaxedRequest] = []
    more = 0
    try:
        for tree in await shown_trees(budget, snapshot, request, host, fits):
            looked_at.append(await budget.run(host_findings(fleet.conditions, tree)))
        if not fits:
            share = TimeBudget(budget_seconds * RELAXING_SHARE)
            more = await share.run(relaxations_in(fleet, found))
    except OutOfTime:
        cut_short = True
    return Diagnosis(
        hosts=int((snapshot.tree_size.values > 0).sum()),
        fitting=fits,
        could=len(could),
        funnel=stages,
        nearest=looked_at,
        relaxations=sorted(found, key=lambda relaxation: -relaxation.trees),
        more_relaxations=more,
        emptied=[int(snapshot.tree_start.values[tree]) for tree in could[:SHOWN_HOSTS]],
        uuids=uuids_of(snapshot, looked_at, could[:SHOWN_HOSTS]),
        cut_short=cut_short,
        named=[group.in_tree for group in request.groups if group.in_tree is not None],
    )


def trees_fitting(snapshot: Snapshot, request: Request) -> Work[list[int]]:
    found: list[int] = []
    for some in fitting(snapshot, request):
        if some is None:
            yield
        else:
            found += some.tolist()
    return found


async def shown_trees(
    budget: TimeBudget, snapshot: Snapshot, request: Request, host: str | None, fits: int
) -> Sequence[int]:
    if host is not None:
        tree = snapshot.tree_with(host)
        return () if tree is None else (tree,)
    return () if fits else await budget.run(nearest(snapshot, request, SHOWN_HOSTS))


def uuids_of(
    snapshot: Snapshot, hosts: Sequence[HostFindings], trees: Sequence[int] = ()
) -> dict[int, str]:
    rows = {int(snapshot.tree_start.values[tree]) for tree in trees}
    for host in hosts:
        rows |= {host.root, *(one.row for one in host.findings if one.row is not None)}
        rows |= {row for row, _, _ in host.additions}
    return {row: snapshot.uuid(row) for row in rows}


# -- whom to move ----------------------------------------------------------------------------------


async def with_moves(
    diagnosis: Diagnosis,
    snapshot: Snapshot,
    request: Request,
    records: HolderRecords,
    budget_seconds: float,
) -> Diagnosis:
    """The diagnosis with whom to move; the snapshot has to be held meanwhile."""
    if diagnosis.fitting:
        return replace(diagnosis, moves=())
    budget = TimeBudget(budget_seconds)
    fleet = FleetProblem(snapshot, request)
    plans: list[PlannedMoves] = []
    cut_short = diagnosis.cut_short
    try:
        trees = await budget.run(trees_fitting(snapshot.without_usage(), request))
        cut_short = cut_short or len(trees) > MOST_TREES
        search = await leaving_search(budget, fleet, trees[:MOST_TREES], records)
        cut_short = not await is_searched(search, budget_seconds) or cut_short
        requests = await requests_of(
            snapshot, [one for each in search.found for one in each.leaving], records
        )
        for leaving in search.found:
            plan = await budget.run(planned_moves(fleet, leaving, requests))
            if plan is not None:
                plans.append(plan)
    except OutOfTime:
        cut_short = True
    plans.sort(key=lambda plan: (plan.swap, sum(not move.to for move in plan.moves)))
    shown = plans[:SHOWN_PLANS]
    uuids = {row: snapshot.uuid(row) for plan in shown for row in rows_of_plan(snapshot, plan)}
    return replace(
        diagnosis,
        moves=shown,
        roots={row: int(snapshot.tree_start.values[snapshot.tree.values[row]]) for row in uuids},
        uuids={**diagnosis.uuids, **uuids},
        cut_short=cut_short,
    )


async def leaving_search(
    budget: TimeBudget, fleet: FleetProblem, trees: Sequence[int], records: HolderRecords
) -> LeavingSearch:
    """Ready to search: with all who hold of what these trees are short of."""
    search = LeavingSearch(fleet)
    for tree in trees:
        await budget.run(search.look_at(tree))
        await budget.yield_if_due()
    snapshot = fleet.snapshot
    held = await records.holders(snapshot.tree_root_id.values[search.short_trees].tolist())
    holders = await budget.run(holders_of(snapshot, held))
    await budget.run(search.take(holders))
    return search


async def is_searched(search: LeavingSearch, budget_seconds: float) -> bool:
    """Whether all was looked through in its share of the time; else any set is better than none."""
    with suppress(OutOfTime):
        await TimeBudget(budget_seconds * LEAVING_SHARE).run(search.smallest())
        return True
    if not search.found:
        with suppress(OutOfTime):
            await TimeBudget(budget_seconds * LEAVING_SHARE).run(search.shrink())
    return False


async def requests_of(
    snapshot: Snapshot, holders: Iterable[Holder], records: HolderRecords
) -> Requests:
    """What these asked for when they got what they hold, as far as it is on record."""
    held: dict[str, Allocations] = {}
    for holder in holders:
        own = held[holder.consumer] = {}
        for (row, name), amount in holder.held.items():
            own.setdefault(snapshot.uuid(row), {})[name] = amount
    queries = queries_followed(await records.decisions(list(held)), held)
    found: dict[str, Request] = {}
    for consumer, query in queries.items():
        request = await records.request_of(query)
        if request is not None:
            found[consumer] = request
    return found


def rows_of_plan(snapshot: Snapshot, plan: PlannedMoves) -> set[int]:
    rows = {int(snapshot.tree_start.values[plan.leaving.tree])}
    for move in plan.moves:
        for row, _ in (*move.holder.held, *move.to):
            rows |= {row, int(snapshot.tree_start.values[snapshot.tree.values[row]])}
    return rows
