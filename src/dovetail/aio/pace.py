"""Cooperative pace: long work on the event loop gives way to others every few milliseconds.

The HTTP edge encodes, decodes and checks long documents at it. A thread would not help where the
work is done in C with the interpreter's lock held.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

GIVE_WAY_AFTER_SECONDS = 0.01


class Pace:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._due = time.monotonic() + GIVE_WAY_AFTER_SECONDS

    async def give_way(self) -> None:
        """Let others on the event loop run if it is time to; call it often."""
        if time.monotonic() > self._due:
            await asyncio.sleep(0)
            self._due = time.monotonic() + GIVE_WAY_AFTER_SECONDS

    async def run(self, work: Generator[None, None, T]) -> T:
        """The result of work that yields wherever it may be interrupted."""
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.give_way()
