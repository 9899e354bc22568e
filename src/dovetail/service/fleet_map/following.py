"""Followers of the map: one look at a time for all of them, and what changed, told to each.

While anybody follows, a task looks twice a second and hands the same change to everybody; whoever
encodes it does that once (`FleetChange.once`). A follower that does not keep up is let go: it comes
again and asks for the whole map.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import structlog

from dovetail.core.columns import Numbers
from dovetail.ledger import LedgerBusy
from dovetail.service.fleet_map.maps import FleetMap, FleetMaps, made_once
from dovetail.service.fleet_map.usage import changed_lanes

T = TypeVar("T")

LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MOST_WAITING = 8
"""Changes that a follower may be behind."""

log = structlog.get_logger("dovetail.service")


class FleetChange:
    """From one state of the map to a later one."""

    def __init__(self, before: FleetMap, now: FleetMap) -> None:
        self.before, self.now = before, now
        self._made: dict[str, Any] = {}

    @property
    def is_layout(self) -> bool:
        """Whether there are other hosts or units than before."""
        return self.before.layout.digest != self.now.layout.digest

    def lanes(self) -> Numbers:
        """Those of which another amount is in use, if the layout is the same."""
        return changed_lanes(self.before.usage, self.now.usage)

    def once(self, name: str, make: Callable[[], T]) -> T:
        return made_once(self._made, name, make)


class FleetFollowers:
    """Used on the event loop only."""

    def __init__(self, maps: FleetMaps) -> None:
        self.maps = maps
        self._queues: set[asyncio.Queue[FleetChange | None]] = set()
        self._looking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._queues)

    async def follow(self) -> AsyncIterator[FleetChange | None]:
        """Changes from now on; None where there was none for a while. Ends if the follower does not
        keep up."""
        queue: asyncio.Queue[FleetChange | None] = asyncio.Queue(MOST_WAITING)
        self._queues.add(queue)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                try:
                    change = await asyncio.wait_for(queue.get(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield None
                    continue
                if change is None:
                    return
                yield change
        finally:
            self._queues.discard(queue)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        before: FleetMap | None = None
        while self._queues:
            try:
                now = await self.maps.now()
            except LedgerBusy as error:
                log.warning("the map is not looked at", error=str(error))
            else:
                if before is not None and now.version != before.version:
                    self._tell(FleetChange(before, now))
                before = now
            await asyncio.sleep(LOOK_SECONDS)

    def _tell(self, change: FleetChange) -> None:
        for queue in tuple(self._queues):
            try:
                queue.put_nowait(change)
            except asyncio.QueueFull:
                # Whatever it missed is in the map that it asks for when it comes again.
                self._queues.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
