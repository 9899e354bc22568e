"""Answers a request from a fresh snapshot, within a budget of time.

The engine runs on the event loop: most answers take a millisecond or two. A longer one gives way to
other requests every few milliseconds, and is cut off at the budget.
"""

from __future__ import annotations

import asyncio
import time

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Search, search
from dovetail.engine.combine import Combination
from dovetail.service.keeper import SnapshotKeeper

SLICE_SECONDS = 0.02
MOST_CANDIDATES = 250_000
"""What one answer may hold: a quarter of a gigabyte of JSON, and as much again on the way."""


class TooBroad(DovetailError):
    """The answer is larger than the time allowed for it."""


async def find(
    keeper: SnapshotKeeper, request: Request, budget_seconds: float
) -> tuple[Search, list[Combination]]:
    """The search and what it found; its snapshot may be read until the caller awaits."""
    snapshot = await keeper.fresh()
    found: list[Combination] = []
    started = slice_started = time.monotonic()
    with keeper.held(snapshot):
        searching = search(snapshot, request)
        for rows in searching.combinations():
            if rows is not None:
                found.append(rows)
                if len(found) % 256:
                    continue
            if len(found) > MOST_CANDIDATES:
                raise TooBroad(
                    f"There are more than {MOST_CANDIDATES} allocation candidates; "
                    "ask for fewer with `limit`, or narrow the request."
                )
            now = time.monotonic()
            if now - slice_started > SLICE_SECONDS:
                if now - started > budget_seconds:
                    raise TooBroad(
                        f"Found {len(found)} allocation candidates in {budget_seconds:g} seconds "
                        "and there are more; ask for fewer with `limit`, or narrow the request."
                    )
                await asyncio.sleep(0)
                slice_started = time.monotonic()
    return searching, found
