"""Cache of the fleet: one snapshot per process, kept true to the ledger by its change log.

All who ask the engine call `fresh()` first. It returns a snapshot that includes every commit made
before the call: it waits for a look at the change log that began after the call. Calls that arrive
while a look is under way share the next one, so a busy server looks no more often than an idle one.
Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.aio.single_flight import NextRun
from dovetail.core.columns import Column
from dovetail.engine import Snapshot
from dovetail.ledger import Cursor, Delta, Ledger
from dovetail.service.device_classes import ClassDefinitions
from dovetail.service.metrics import (
    SNAPSHOT_BYTES,
    SNAPSHOT_CHANGES,
    SNAPSHOT_CHECKED,
    SNAPSHOT_ROWS,
    SNAPSHOT_TREES,
)
from dovetail.service.typical_requests import TypicalRequests
from dovetail.telemetry.phases import phase


class SnapshotKeeper:
    def __init__(self, ledger: Ledger, typical_requests: TypicalRequests | None = None) -> None:
        self._ledger = ledger
        self._snapshot = Snapshot()
        self._cursor: Cursor | None = None
        self._looks = NextRun(self._take_in)
        self._holders = 0
        self.definitions = ClassDefinitions()
        """Of device classes, as true as the snapshot."""
        self.typical_requests = typical_requests or TypicalRequests()
        """What the fleet is typically asked for: goes with the snapshot wherever requests go."""

    async def fresh(self) -> Snapshot:
        """The snapshot, true now. It changes at the next await: see `held`."""
        with phase("snapshot"):
            await self._looks.join()
        return self._snapshot

    async def _take_in(self) -> None:
        polled = self._ledger.poll(self._cursor)
        delta = polled.result() if polled.done() else await asyncio.wrap_future(polled)
        if delta is not None:
            self._apply(delta)
        SNAPSHOT_CHECKED.set_to_current_time()

    def _apply(self, delta: Delta) -> None:
        if self._holders and (delta.trees or delta.usage or delta.names):
            # Somebody is still reading the old state: leave it to them.
            self._snapshot = self._snapshot.copy()
            self._holders = 0
        snapshot = self._snapshot
        if delta.everything and delta.trees and delta.names:
            snapshot.load(delta.trees, delta.names)
        elif delta.trees or delta.removed_roots:
            assert delta.trees is not None
            snapshot.replace(delta.trees, delta.names, delta.removed_roots)
        elif delta.names:
            snapshot.rename(delta.names)
        snapshot.update_usage(delta.usage)
        if delta.definitions is not None:
            self.definitions = ClassDefinitions(delta.definitions)
        self._cursor = delta.cursor
        measure(snapshot, delta)

    @contextmanager
    def held(self, snapshot: Snapshot) -> Iterator[None]:
        """While held, the snapshot stays as it is even across awaits."""
        self._holders += 1
        try:
            yield
        finally:
            if snapshot is self._snapshot:
                self._holders -= 1


def measure(snapshot: Snapshot, delta: Delta) -> None:
    """Tell what was taken in, and how large the snapshot is now."""
    if delta.usage:
        SNAPSHOT_CHANGES.labels("usage").inc()
    if delta.names:
        SNAPSHOT_CHANGES.labels("names").inc()
    if delta.trees or delta.removed_roots:
        SNAPSHOT_CHANGES.labels("everything" if delta.everything else "trees").inc()
        SNAPSHOT_ROWS.set(snapshot.live_rows)
        SNAPSHOT_TREES.set(len(snapshot.tree_of_root))
        SNAPSHOT_BYTES.set(columns_bytes(snapshot))


def columns_bytes(snapshot: Snapshot) -> int:
    """The memory of its columns."""
    own = [value for value in vars(snapshot).values() if isinstance(value, Column)]
    of_classes = [
        column for inventories in snapshot.inventories.values() for column in inventories.columns()
    ]
    return sum(column.values.nbytes for column in (*own, *of_classes))
