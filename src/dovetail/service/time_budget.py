"""Cooperative time budget: long work on the event loop gives way to others, and ends in time.

Searches and explanations run under one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from dovetail.engine.explain import Work

T = TypeVar("T")

SLICE_SECONDS = 0.02


class OutOfTime(Exception):
    """The time for a piece of work is over."""


class TimeBudget:
    """A budget of seconds, counted from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._slice_end = time.monotonic() + SLICE_SECONDS

    async def give_way(self) -> None:
        """Let others run if it is their turn; to be called often. Raises OutOfTime."""
        now = time.monotonic()
        if now > self._end:
            raise OutOfTime
        if now > self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = time.monotonic() + SLICE_SECONDS

    async def run(self, work: Work[T]) -> T:
        """The result of work that yields often."""
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.give_way()
