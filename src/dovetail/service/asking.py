"""Search for candidates, one way for all who ask: fresh snapshot, unknown names refused, search.

Called by GET /allocation_candidates, by claims of the best place and by what-if questions. The
engine runs on the event loop: most answers take a millisecond or two. A longer one yields to other
requests every few milliseconds, and is cut off at the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dovetail.core.errors import DovetailError, Malformed
from dovetail.core.request import Request
from dovetail.engine import Search, Snapshot, search
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank import PressureWatch, RankedSearch, TooManyToRank, Typical
from dovetail.engine.rank.typical import NOTHING_TYPICAL
from dovetail.service.claiming.equals import Order, among_equals
from dovetail.service.metrics import CANDIDATES, CUT_OFFS
from dovetail.service.snapshots import SnapshotKeeper
from dovetail.service.time_budget import OutOfTime, TimeBudget
from dovetail.telemetry.phases import phase

MOST_CANDIDATES = 250_000
"""What one answer may hold: a quarter of a gigabyte of JSON, and as much again on the way."""


GRACE_SECONDS = 1.0
"""What a ranking has to tell the best so far once its time is over; it takes milliseconds."""


class TooBroad(DovetailError):
    """The answer is larger than the time allowed for it."""


class UnknownName(Malformed):
    """A resource class or trait that nobody ever heard of: more likely misspelt than missing."""


async def find(
    keeper: SnapshotKeeper,
    request: Request,
    budget_seconds: float,
    *,
    order: Order | None = None,
) -> tuple[Search, Block]:
    """The search and what it found; its snapshot may be read until the caller awaits.

    Raises UnknownName, TooBroad.
    """
    return await find_for(keeper, await keeper.fresh(), request, budget_seconds, order=order)


async def find_for(
    keeper: SnapshotKeeper,
    snapshot: Snapshot,
    request: Request,
    budget_seconds: float,
    *,
    order: Order | None = None,
) -> tuple[Search, Block]:
    """`find` in the keeper's snapshot, which was taken just now and in the way of the caller."""
    refuse_unknown_names(snapshot, request)
    with keeper.held(snapshot):
        searching, rows = await find_in(
            snapshot,
            request,
            budget_seconds,
            typical=keeper.typical_requests.typical,
            watch=keeper.pressure,
            order=order,
        )
    if len(rows):
        keeper.typical_requests.learn(request)
    return searching, rows


async def find_in(
    snapshot: Snapshot,
    request: Request,
    budget_seconds: float,
    *,
    typical: Typical = NOTHING_TYPICAL,
    watch: PressureWatch | None = None,
    order: Order | None = None,
) -> tuple[Search, Block]:
    """Search in a snapshot that does not change meanwhile; for `find` and what-if questions."""
    budget = TimeBudget(budget_seconds)
    with phase("search"):
        searching = (
            RankedSearch(snapshot, request, typical, watch)
            if request.rank
            else search(snapshot, request)
        )
        if order is not None:
            searching.turn_to(order.of_trees)
        try:
            rows = await collect(searching, budget)
        except TooManyToRank as error:
            raise TooBroad(f"{error}; narrow the request, or leave out `rank`.") from error
        if order is not None:
            rows = among_equals(searching, rows, order)
    CANDIDATES.observe(len(rows))
    return searching, rows


def refuse_unknown_names(snapshot: Snapshot, request: Request) -> None:
    for group in request.groups:
        for name in group.resources:
            if name not in snapshot.class_ids:
                raise UnknownName(
                    f"Invalid resource class in resources parameter: No such resource class {name}."
                )
    named = [
        *(names for group in request.groups for names in (*group.required, group.forbidden)),
        *request.root_required,
        request.root_forbidden,
    ]
    for names in named:
        refuse_unknown_traits(snapshot, names)


def refuse_unknown_traits(snapshot: Snapshot, names: Iterable[str]) -> None:
    unknown = sorted(name for name in names if name not in snapshot.trait_ids)
    if unknown:
        raise UnknownName(f"No such trait(s): {', '.join(unknown)}.")


async def collect(searching: Search, budget: TimeBudget) -> Block:
    blocks: list[Block] = []
    found = 0
    for block in searching.candidates(searching.request.limit):
        if block is not None:
            blocks.append(block)
            found += len(block)
            refuse_too_many(found)
        try:
            await budget.yield_if_due()
        except OutOfTime as error:
            ranked = await best_so_far(searching)
            if not len(ranked):
                raise out_of_time(found, budget.seconds) from error
            return ranked
    return np.concatenate(blocks) if blocks else np.empty((0, len(searching.slots)), np.int32)


async def best_so_far(searching: Search) -> Block:
    """The best that a limited ranking came upon in its time, if it is one."""
    limit = searching.request.limit
    if not isinstance(searching, RankedSearch) or limit is None:
        return np.empty((0, 0), np.int32)
    try:
        found = await TimeBudget(GRACE_SECONDS).run(searching.best_so_far(limit))
    except OutOfTime:
        return np.empty((0, 0), np.int32)
    if len(found):
        CUT_OFFS.labels("ranking").inc()
    return found


def unranked_trees(searching: Search) -> int:
    """How many trees there was no time to rank: they may hold better candidates."""
    return searching.unranked_trees if isinstance(searching, RankedSearch) else 0


def scores_of(searching: Search) -> Sequence[Mapping[str, int]]:
    """Of each candidate found, total and by policy; none if the request was not ranked."""
    return searching.scores if isinstance(searching, RankedSearch) else ()


def refuse_too_many(found: int) -> None:
    if found > MOST_CANDIDATES:
        CUT_OFFS.labels("many").inc()
        raise TooBroad(
            f"There are more than {MOST_CANDIDATES} allocation candidates; "
            "ask for fewer with `limit`, or narrow the request."
        )


def out_of_time(found: int, seconds: float) -> TooBroad:
    CUT_OFFS.labels("long").inc()
    return TooBroad(
        f"Found {found} allocation candidates in {seconds:g} seconds "
        "and there are more; ask for fewer with `limit`, or narrow the request."
    )
