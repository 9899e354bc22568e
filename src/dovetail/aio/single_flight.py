"""Work that many ask for and that is done once for all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Rounds(Generic[T]):
    """One run at a time. Who asks during a run waits for the next, which begins after asking."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def join(self) -> T:
        """The result of a run that begins now or later; its error is raised to all who wait."""
        if self._next is None:
            self._next = asyncio.create_task(self._run(self._running))
            # If all who waited were cancelled, nobody is left to see its error.
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._next)

    async def _run(self, previous: asyncio.Task[T] | None) -> T:
        if previous is not None and not previous.done():
            await asyncio.wait((previous,))
        self._running, self._next = self._next, None
        return await self._work()
