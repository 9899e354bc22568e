"""Work that may take long, done beside the rest: waited for a little, then left to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

LOG = structlog.get_logger("dovetail.node.manager")


class Errands:
    """One of each name at a time."""

    def __init__(self, patience: float) -> None:
        """`patience` in seconds."""
        self._patience = patience
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Unless it still runs from before; a failure is logged."""
        if name in self._running:
            return
        task = asyncio.create_task(self._logged(name, work()))
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name))
        await asyncio.wait((task,), timeout=self._patience)

    async def stop(self) -> None:
        running = list(self._running.values())
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _logged(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            LOG.exception("failed", errand=name)
