"""Keeps the state true to the ledger: what pods and others hold, a look every second or sooner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

SECONDS = 1.0

Hear = Callable[[Mapping[str, Mapping[str, Amounts]]], None]


class LedgerWatch:
    def __init__(self, ledger: DeviceLedger, hear: Hear) -> None:
        self._ledger = ledger
        self._hear = hear
        self._cursor: str | None = None
        self._begun = 0
        self._one_at_a_time = asyncio.Lock()

    async def refresh(self) -> None:
        """When it returns, all is known that was in the ledger when it was called.

        Many who wait share one look. Raises what the ledger raises.
        """
        seen = self._begun
        async with self._one_at_a_time:
            if self._begun > seen:
                return
            self._begun += 1
            self._cursor, nodes = await self._ledger.changes(self._cursor)
            self._hear(nodes)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.refresh()
            except DovetailError as error:
                LOG.warning("ledger not read", error=str(error))
