"""Tells the ledger what devices nodes have and which classes there are, so that others can know.

Nothing is told twice. Only a leader tells: what a replica that lags behind knows may be old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.ledger import LedgerBusy

LOG = structlog.get_logger("dovetail.kube.scheduler")

T = TypeVar("T")

WORKERS = 8
"""Tell what changes at a time; the ledger commits together what comes together."""
AT_FIRST = 32
"""Tell everything at a time, when that is all there is to do."""


class Publisher(Generic[T]):
    """Name by name, until the ledger says what `things` say."""

    def __init__(
        self,
        name: str,
        things: Mapping[str, T],
        *,
        put: Callable[[str, T], Awaitable[None]],
        drop: Callable[[str], Awaitable[None]],
    ) -> None:
        self._name = name
        self._things = things
        self._put, self._drop = put, drop
        self._queue = WorkQueue(name, cap=30.0)
        self._told: dict[str, T | None] = {}
        self._on = False

    async def start(self) -> None:
        """Tell everything, and from now on what changes. Raises LedgerBusy.

        What the ledger refuses is tried again later: others need not wait for it.
        """
        self._on = True
        self._told.clear()
        left = list(self._things)

        async def tell_some() -> None:
            while left:
                name = left.pop()
                try:
                    await self._tell(name)
                except LedgerBusy:
                    raise
                except DovetailError as error:
                    LOG.warning(f"cannot {self._name}", of=name, error=str(error))
                    self._queue.add(name)

        await asyncio.gather(*(tell_some() for _ in range(AT_FIRST)))

    def stop(self) -> None:
        self._on = False

    def changed(self, name: str) -> None:
        if self._on:
            self._queue.add(name)

    def again(self, name: str) -> None:
        """The ledger does not seem to know."""
        self._told.pop(name, None)
        self.changed(name)

    async def run(self) -> None:
        try:
            await self._queue.run(self._tell, WORKERS)
        finally:
            self._queue.close()

    async def _tell(self, name: str) -> None:
        thing = self._things.get(name)
        if not self._on or (name in self._told and self._told[name] == thing):
            return
        if thing is None:
            await self._drop(name)
        else:
            await self._put(name, thing)
        self._told[name] = thing
