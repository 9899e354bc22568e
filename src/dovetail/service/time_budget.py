"""Lets long work on the event loop give way to others, and ends it when its time is up."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from dovetail.engine.explain import Work

T = TypeVar("T")

SLICE_SECONDS = 0.02


class OutOfTime(Exception):
    """The time for a piece of work is over."""


class Pace:
    """A budget of seconds, counted from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._slice_end = time.monotonic() + SLICE_SECONDS

    async def breathe(self) -> None:
        """To be called often."""
        now = time.monotonic()
        if now > self._end:
            raise OutOfTime
        if now > self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = time.monotonic() + SLICE_SECONDS

    async def finished(self, work: Work[T]) -> T:
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.breathe()
