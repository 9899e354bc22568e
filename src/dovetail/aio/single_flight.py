"""Single flight: work that many ask for at the same time is done once for all of them.

`SingleFlight` lets callers join the call that is under way for their key (keys of an issuer, one
token asked about by many requests). `NextRun` lets callers share the next run that begins after
they asked, for whoever must see what happened before (snapshots, checkpoints, pod lists).

In both, a caller that stops waiting does not end the work of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """One call at a time for each key."""

    def __init__(self) -> None:
        self._calls: dict[K, asyncio.Task[T]] = {}

    def is_under_way(self, key: K) -> bool:
        return key in self._calls

    async def call(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the call under way gives, or `work` if there is none; errors are everybody's."""
        task = self._calls.get(key)
        if task is None:
            task = self._calls[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        calls = list(self._calls.values())
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _finish(self, key: K, task: asyncio.Task[T]) -> None:
        del self._calls[key]
        _take_note(task)


class NextRun(Generic[T]):
    """One run at a time; who asks during a run shares the next, which begins after asking."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there is a run, or somebody waits for one."""
        running = self._running is not None and not self._running.done()
        return running or self._next is not None

    async def join(self) -> T:
        """The result of a run that begins now or later; its error is raised to all who wait."""
        if self._next is None:
            self._next = asyncio.create_task(self._run(self._running))
            self._next.add_done_callback(_take_note)
        return await asyncio.shield(self._next)

    async def _run(self, previous: asyncio.Task[T] | None) -> T:
        if previous is not None and not previous.done():
            await asyncio.wait((previous,))
        self._running, self._next = self._next, None
        return await self._work()


def _take_note(task: asyncio.Task[Any]) -> None:
    """Read the error here, too: everybody who waited for it may be gone."""
    if not task.cancelled():
        task.exception()
