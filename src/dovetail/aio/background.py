"""Background work: tasks that go on beside their caller, kept alive, named, and ended together.

The event loop holds tasks only weakly, so somebody has to keep them: `Background` does for the
gate of the node agent and its proxy. `NamedBackground` runs at most one task of each name, which
its caller (the reconciler) waits for a little and then leaves to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog

T = TypeVar("T")


class Background:
    """Tasks that nobody has to wait for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """To its end, even if the caller stops waiting: it asks again, and finds it done."""
        return await asyncio.shield(self.start(work))

    async def stop(self, grace_seconds: float = 0.0) -> None:
        """Let the tasks end by themselves for so long, then cancel them."""
        if self._tasks and grace_seconds > 0:
            await asyncio.wait(self._tasks, timeout=grace_seconds)
        tasks = list(self._tasks)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class NamedBackground:
    """At most one task of each name at a time; a failure is logged."""

    def __init__(self, wait_seconds: float, logger: structlog.typing.FilteringBoundLogger) -> None:
        self._wait_seconds = wait_seconds
        self._logger = logger
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the work unless it still runs from before, and wait for it for a moment."""
        if name in self._running:
            return
        task = asyncio.create_task(self._logged(name, work()))
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name))
        await asyncio.wait((task,), timeout=self._wait_seconds)

    async def stop(self) -> None:
        running = list(self._running.values())
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _logged(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            self._logger.exception("failed", errand=name)
