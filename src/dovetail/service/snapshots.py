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
from dovetail.core.tables import Names, TableColumns
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

MOST_ROWS_AT_ONCE = 1000
"""Rows of changed trees that are taken in on the event loop, in some milliseconds."""


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
            await self._make_room(delta)
            self._apply(delta)
        SNAPSHOT_CHECKED.set_to_current_time()

    async def _make_room(self, delta: Delta) -> None:
        """Have a snapshot to apply the delta to, and large deltas applied to it, by a thread.

        The event loop goes on with the old snapshot meanwhile, and only it: nobody else changes
        what the thread works on.
        """
        twin: Snapshot | None = None
        if delta.forest is not None:
            twin = await asyncio.to_thread(loaded, delta.forest, delta.names)
        elif is_large(delta):
            twin = self._snapshot.copy()
            await asyncio.to_thread(change_trees, twin, delta)
        elif self._holders and (delta.trees or delta.usage or delta.names):
            # Somebody is still reading the old state: leave it to them.
            twin = self._snapshot.copy()
        if twin is not None:
            self._snapshot, self._holders = twin, 0

    def _apply(self, delta: Delta) -> None:
        snapshot = self._snapshot
        if delta.forest is None and not is_large(delta):
            change_trees(snapshot, delta)
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


def loaded(forest: TableColumns, names: Names | None) -> Snapshot:
    """A new snapshot of a whole forest."""
    assert names is not None
    snapshot = Snapshot()
    snapshot.load(forest, names)
    return snapshot


def is_large(delta: Delta) -> bool:
    """Whether it changes so many trees that taking it in would hold up the event loop."""
    rows = len(delta.trees.providers) if delta.trees is not None else 0
    return rows + len(delta.removed_roots) > MOST_ROWS_AT_ONCE


def change_trees(snapshot: Snapshot, delta: Delta) -> None:
    if delta.trees is not None:
        snapshot.replace(delta.trees, delta.names, delta.removed_roots)
    elif delta.names is not None:
        snapshot.rename(delta.names)


def measure(snapshot: Snapshot, delta: Delta) -> None:
    """Tell what was taken in, and how large the snapshot is now."""
    if delta.usage:
        SNAPSHOT_CHANGES.labels("usage").inc()
    if delta.names:
        SNAPSHOT_CHANGES.labels("names").inc()
    if delta.forest or delta.trees or delta.removed_roots:
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
