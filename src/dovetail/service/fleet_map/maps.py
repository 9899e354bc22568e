"""The map as it is now, one for all who look: `FleetMaps` makes it when somebody asks.

A map is a layout and what is in use. As long as no tree changes the layout stays, and what is in
use is a vector operation away from the snapshot. Those who follow the map share one look at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from dovetail.aio.single_flight import NextRun
from dovetail.aio.thread_results import result_of
from dovetail.engine import Snapshot
from dovetail.ledger import Cursor, Ledger, LedgerBusy
from dovetail.ledger.views import fleet_names
from dovetail.service.fleet_map.layout import FleetLayout, decided_of, layout_of
from dovetail.service.fleet_map.usage import FleetUsage, usage_of
from dovetail.service.snapshots import SnapshotKeeper

T = TypeVar("T")

MOST_LOOKS = 5


class FleetInMotion(LedgerBusy):
    """Trees kept changing while somebody looked at them."""


class FleetMap:
    """One state of the fleet, and what was made of it for those who look."""

    def __init__(self, layout: FleetLayout, usage: FleetUsage) -> None:
        self.layout, self.usage = layout, usage
        self.version = f"{layout.digest}.{usage.digest}"
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What is made of this map under a name, the first time."""
        return made_once(self._made, name, make)

    def once_per_layout(self, name: str, make: Callable[[], T]) -> T:
        """The same for what is made of the layout alone."""
        return made_once(self.layout.made, name, make)


def made_once(kept: dict[str, Any], name: str, make: Callable[[], T]) -> T:
    if name not in kept:
        kept[name] = make()
    made: T = kept[name]
    return made


class FleetMaps:
    def __init__(self, ledger: Ledger, keeper: SnapshotKeeper) -> None:
        self._ledger, self._keeper = ledger, keeper
        self._looks = NextRun(self._look)
        self._map: FleetMap | None = None
        self._cursor: Cursor | None = None
        """Of the map."""
        self._note: Callable[[FleetMap], None] | None = None

    def when_shown(self, note: Callable[[FleetMap], None]) -> None:
        """Have `note` called with every map before anybody has it, the same one more than once."""
        self._note = note

    async def now(self) -> FleetMap:
        """Includes every commit made before the call."""
        return await self._looks.join()

    async def with_snapshot(self) -> tuple[FleetMap, Snapshot]:
        """The map, and a snapshot with the same layout, which changes at the next await. Raises
        FleetInMotion."""
        for _ in range(MOST_LOOKS):
            found = await self.now()
            snapshot = await self._keeper.fresh()
            if found.layout.token is snapshot.layout:
                return found, snapshot
        raise FleetInMotion("The fleet changes faster than it can be looked at; try again.")

    async def _look(self) -> FleetMap:
        found = await self._looked()
        if self._note is not None:
            self._note(found)
        return found

    async def _looked(self) -> FleetMap:
        snapshot = await self._keeper.fresh()
        known, cursor = self._map, self._keeper.cursor
        if known is not None and cursor == self._cursor:
            return known
        if known is not None and known.layout.token is snapshot.layout:
            layout, usage = known.layout, usage_of(known.layout, snapshot)
        else:
            layout, usage = await self._laid_out(snapshot)
        if known is None or known.layout is not layout or known.usage.digest != usage.digest:
            known = FleetMap(layout, usage)
        self._map, self._cursor = known, cursor
        return known

    async def _laid_out(self, snapshot: Snapshot) -> tuple[FleetLayout, FleetUsage]:
        """Of a large fleet that takes a while, so it is not done on everybody's event loop."""
        decided = decided_of(snapshot)
        with self._keeper.held(snapshot):
            names = await result_of(self._ledger.read(fleet_names.of_fleet))
            layout = await asyncio.to_thread(layout_of, snapshot, decided, names)
            return layout, usage_of(layout, snapshot)
