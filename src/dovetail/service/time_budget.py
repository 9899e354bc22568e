"""Cooperative time budget: long work on the event loop yields to others, and ends in time.

Searches and explanations run under one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from dovetail.aio.pace import run_in_steps
from dovetail.engine.explain import Work

T = TypeVar("T")

YIELD_AFTER_SECONDS = 0.02


class OutOfTime(Exception):
    """The time for a piece of work is over."""


class TimeBudget:
    """A budget of seconds, counted from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._yield_at = time.monotonic() + YIELD_AFTER_SECONDS

    async def yield_if_due(self) -> None:
        """Let others on the event loop run if it is time to; call it often. Raises OutOfTime."""
        now = time.monotonic()
        if now > self._end:
            raise OutOfTime
        if now > self._yield_at:
            await asyncio.sleep(0)
            self._yield_at = time.monotonic() + YIELD_AFTER_SECONDS

    async def run(self, work: Work[T]) -> T:
        """The result of work that yields often."""
        return await run_in_steps(work, self.yield_if_due)
