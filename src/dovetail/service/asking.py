"""Answers a request from a fresh snapshot, within a budget of time.

The engine runs on the event loop: most answers take a millisecond or two. A longer one gives way to
other requests every few milliseconds, and is cut off at the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Search, Snapshot, search
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank import RankedSearch, TooManyToRank, Typical
from dovetail.engine.rank.typical import NOTHING_TYPICAL
from dovetail.service.snapshots import SnapshotKeeper
from dovetail.service.time_budget import OutOfTime, Pace
from dovetail.telemetry.metrics import CANDIDATES, CUT_OFFS
from dovetail.telemetry.phases import phase

MOST_CANDIDATES = 250_000
"""What one answer may hold: a quarter of a gigabyte of JSON, and as much again on the way."""


class TooBroad(DovetailError):
    """The answer is larger than the time allowed for it."""


async def find(
    keeper: SnapshotKeeper, request: Request, budget_seconds: float
) -> tuple[Search, Block]:
    """The search and what it found; its snapshot may be read until the caller awaits."""
    snapshot = await keeper.fresh()
    with keeper.held(snapshot):
        searching, rows = await find_in(
            snapshot, request, budget_seconds, typical=keeper.demand.typical
        )
    if len(rows):
        keeper.demand.saw(request)
    return searching, rows


async def find_in(
    snapshot: Snapshot,
    request: Request,
    budget_seconds: float,
    *,
    typical: Typical = NOTHING_TYPICAL,
) -> tuple[Search, Block]:
    """The same in a snapshot that stands still."""
    pace = Pace(budget_seconds)
    with phase("search"):
        searching = (
            RankedSearch(snapshot, request, typical) if request.rank else search(snapshot, request)
        )
        try:
            rows = await all_found(searching, pace)
        except TooManyToRank as error:
            raise TooBroad(f"{error}; narrow the request, or leave out `rank`.") from error
    CANDIDATES.observe(len(rows))
    return searching, rows


async def all_found(searching: Search, pace: Pace) -> Block:
    blocks: list[Block] = []
    found = 0
    for block in searching.blocks():
        if block is not None:
            blocks.append(block)
            found += len(block)
            refuse_many(found)
        try:
            await pace.breathe()
        except OutOfTime as error:
            raise too_long(found, pace.seconds) from error
    return np.concatenate(blocks) if blocks else np.empty((0, len(searching.slots)), np.int32)


def scores_of(searching: Search) -> Sequence[Mapping[str, int]]:
    """Of each candidate found, total and by policy; none if the request was not ranked."""
    return searching.scores if isinstance(searching, RankedSearch) else ()


def refuse_many(found: int) -> None:
    if found > MOST_CANDIDATES:
        CUT_OFFS.labels("many").inc()
        raise TooBroad(
            f"There are more than {MOST_CANDIDATES} allocation candidates; "
            "ask for fewer with `limit`, or narrow the request."
        )


def too_long(found: int, seconds: float) -> TooBroad:
    CUT_OFFS.labels("long").inc()
    return TooBroad(
        f"Found {found} allocation candidates in {seconds:g} seconds "
        "and there are more; ask for fewer with `limit`, or narrow the request."
    )
