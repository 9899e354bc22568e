"""Answers a request from a fresh snapshot, within a budget of time.

The engine runs on the event loop: most answers take a millisecond or two. A longer one gives way to
other requests every few milliseconds, and is cut off at the budget.
"""

from __future__ import annotations

import asyncio
import time

import numpy as np

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine import Search, search
from dovetail.engine.turns import Block
from dovetail.service.keeper import SnapshotKeeper

SLICE_SECONDS = 0.02
MOST_CANDIDATES = 250_000
"""What one answer may hold: a quarter of a gigabyte of JSON, and as much again on the way."""


class TooBroad(DovetailError):
    """The answer is larger than the time allowed for it."""


async def find(
    keeper: SnapshotKeeper, request: Request, budget_seconds: float
) -> tuple[Search, Block]:
    """The search and what it found; its snapshot may be read until the caller awaits."""
    snapshot = await keeper.fresh()
    blocks: list[Block] = []
    found = 0
    started = slice_started = time.monotonic()
    with keeper.held(snapshot):
        searching = search(snapshot, request)
        for block in searching.blocks():
            if block is not None:
                blocks.append(block)
                found += len(block)
                refuse_many(found)
            now = time.monotonic()
            if now - slice_started > SLICE_SECONDS:
                refuse_long(found, now - started, budget_seconds)
                await asyncio.sleep(0)
                slice_started = time.monotonic()
    rows = np.concatenate(blocks) if blocks else np.empty((0, len(searching.slots)), np.int32)
    return searching, rows


def refuse_many(found: int) -> None:
    if found > MOST_CANDIDATES:
        raise TooBroad(
            f"There are more than {MOST_CANDIDATES} allocation candidates; "
            "ask for fewer with `limit`, or narrow the request."
        )


def refuse_long(found: int, seconds: float, budget_seconds: float) -> None:
    if seconds > budget_seconds:
        raise TooBroad(
            f"Found {found} allocation candidates in {budget_seconds:g} seconds "
            "and there are more; ask for fewer with `limit`, or narrow the request."
        )
