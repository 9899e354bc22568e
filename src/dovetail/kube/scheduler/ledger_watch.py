"""Ledger watch: keeps the cluster state true to what the ledger says is held, by whomever.

It runs on every replica; whoever lost a race for devices refreshes it at once.
"""

from __future__ import annotations

import asyncio

import structlog

from dovetail.aio.single_flight import NextRun
from dovetail.core.errors import DovetailError
from dovetail.kube.scheduler.state import ClusterState
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")


class LedgerWatch:
    def __init__(self, ledger: DeviceLedger, state: ClusterState, interval: float) -> None:
        """`interval`: seconds between two looks at the ledger."""
        self._ledger = ledger
        self._state = state
        self._interval = interval
        self._cursor: str | None = None
        self._looks = NextRun(self._look)

    async def refresh(self) -> None:
        """When it returns, all is known that was in the ledger when it was called.

        Many who wait share one look. Raises what the ledger raises.
        """
        await self._looks.join()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.refresh()
            except DovetailError as error:
                LOG.warning("ledger not read", error=str(error))

    async def _look(self) -> None:
        self._cursor, nodes = await self._ledger.changes(self._cursor)
        self._state.on_ledger(nodes)
