"""Cache of the fleet: one snapshot per process, kept true to the ledger by its change log.

All who ask the engine call `fresh()` first. It returns a snapshot that includes every commit made
before the call: it waits for a look at the change log that began after the call. Calls that arrive
while a look is under way share the next one, so a busy server looks no more often than an idle one.
Claims look for a place in `fresh_for_claims()`, which lacks what other claims of this process are
about to take. It is the same snapshot: what claims under way take is subtracted when a claim is
about to look, and added again when somebody else is. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dovetail.aio.pace import collector_spared
from dovetail.aio.single_flight import NextRun
from dovetail.aio.thread_results import result_of
from dovetail.core.columns import Column
from dovetail.core.tables import Names, TableColumns
from dovetail.engine import Snapshot
from dovetail.engine.rank import PressureWatch
from dovetail.engine.tree_kinds import warm
from dovetail.ledger import Cursor, Delta, Ledger
from dovetail.service.claiming.under_way import (
    ClaimsUnderWay,
    Place,
    PlaceAmounts,
    has_room,
    usages_with,
)
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
        self.is_catching_up = False
        """Whether a fleet is being taken in that the ledger has told in full, after another one."""
        self._holders = 0
        self._under_way = ClaimsUnderWay()
        self._subtracted: dict[Place, int] = {}
        """What is missing from the snapshot as it is because claims under way take it."""
        self.definitions = ClassDefinitions()
        """Of device classes, as true as the snapshot."""
        self.typical_requests = typical_requests or TypicalRequests()
        """What the fleet is typically asked for: goes with the snapshot wherever requests go."""
        self.pressure = PressureWatch()
        """On what is left of the fleet, for rankings."""

    async def fresh(self) -> Snapshot:
        """The snapshot, true now. It changes at the next await: see `held`."""
        await self._look()
        self._show_ledger()
        return self._snapshot

    async def fresh_for_claims(self) -> Snapshot:
        """The same, without what claims under way are about to take."""
        await self._look()
        self._subtract_under_way()
        return self._snapshot

    # -- claims under way -----------------------------------------------------------------------

    @contextmanager
    def claiming(self, amounts: PlaceAmounts) -> Iterator[None]:
        """While in it, and if it does not raise until the snapshot has it, the claim counts."""
        self._under_way.begin(amounts)
        try:
            yield
        except BaseException:
            self._under_way.forget(amounts)
            raise
        self._under_way.grant(amounts)

    def has_room(self, amounts: PlaceAmounts) -> bool:
        """Whether all of it is free beside what claims under way take, as far as is known."""
        self._subtract_under_way()
        return has_room(self._snapshot, amounts)

    @property
    def cursor(self) -> Cursor | None:
        """Where the snapshot stands in the change log; while that is the same, so is the fleet."""
        return self._cursor

    @property
    def claims_under_way(self) -> ClaimsUnderWay:
        return self._under_way

    def _subtract_under_way(self) -> None:
        changed = self._under_way.changed
        if changed:
            taken = self._under_way.taken
            self._subtract({place: taken.get(place, 0) for place in changed})
            changed.clear()

    def _show_ledger(self) -> None:
        """Add again what was subtracted."""
        if self._subtracted:
            self._under_way.changed.update(self._subtracted)
            self._subtract(dict.fromkeys(self._subtracted, 0))

    def _subtract(self, amounts: PlaceAmounts) -> None:
        """Have the snapshot lack so much at each of these places."""
        more = {
            place: difference
            for place, amount in amounts.items()
            if (difference := amount - self._subtracted.get(place, 0))
        }
        if more:
            self._leave_to_holders()
            self._snapshot.update_usage(usages_with(self._snapshot, more.items()))
        for place, amount in amounts.items():
            if amount:
                self._subtracted[place] = amount
            else:
                self._subtracted.pop(place, None)

    # -- taking in what the ledger says ---------------------------------------------------------

    async def _look(self) -> None:
        with phase("snapshot"):
            if self._looks.is_busy or not self._took_in_at_once():
                await self._looks.join()

    def _took_in_at_once(self) -> bool:
        """Take in what is new, if it is so little that nothing has to be waited for."""
        delta = None if self._cursor is None else self._ledger.glance(self._cursor)
        if delta is None:
            return False
        news = None if delta.cursor == self._cursor else delta
        self._finish_look(len(self._under_way.granted), news)
        return True

    async def _take_in(self) -> None:
        granted = len(self._under_way.granted)
        # It may read a fleet: very many rows.
        with collector_spared():
            delta = await result_of(self._ledger.poll(self._cursor))
        if delta is not None and is_large(delta):
            self.is_catching_up = self._cursor is not None
            try:
                with collector_spared():
                    await self._change_elsewhere(delta)
            finally:
                self.is_catching_up = False
        self._finish_look(granted, delta)
        if delta is not None and delta.forest is not None:
            await asyncio.to_thread(give_back_memory)

    def _finish_look(self, granted: int, delta: Delta | None) -> None:
        """Take in what a look has told, which began when so many claims had been granted."""
        # What was written before this look began is in it, or was in one before. From here on there
        # is no wait until it is in the snapshot: its place is never free in between.
        for amounts in self._under_way.granted[:granted]:
            self._under_way.forget(amounts)
        del self._under_way.granted[:granted]
        if delta is not None:
            self._apply(delta)
        SNAPSHOT_CHECKED.set_to_current_time()

    def _leave_to_holders(self) -> None:
        """Go on with a copy if somebody is still reading the state that is about to change."""
        if self._holders:
            self._snapshot = self._snapshot.copy()
            self._holders = 0

    async def _change_elsewhere(self, delta: Delta) -> None:
        """Have a large delta's trees taken in by a thread, into a snapshot of its own.

        The event loop goes on with the old one meanwhile; then all go on with the new one, from
        which nothing is subtracted that claims under way take.
        """
        if delta.forest is not None:
            twin = await asyncio.to_thread(loaded, delta.forest, delta.names)
        else:
            self._show_ledger()
            twin = self._snapshot.copy()
            await asyncio.to_thread(change_trees, twin, delta)
        # Claims that began meanwhile were subtracted from the old one, if at all.
        self._snapshot, self._holders, self._subtracted = twin, 0, {}
        self._under_way.changed.update(self._under_way.taken)

    def _apply(self, delta: Delta) -> None:
        if delta.trees or delta.usage or delta.names:
            self._leave_to_holders()
        if not is_large(delta):
            if delta.trees is not None:
                # Places come and go: subtracted again, from what is there then, by who needs it.
                self._show_ledger()
            change_trees(self._snapshot, delta)
        snapshot = self._snapshot
        snapshot.update_usage(self._usage_beside_claims(delta))
        if delta.definitions is not None:
            self.definitions = ClassDefinitions(delta.definitions)
        self._cursor = delta.cursor
        measure(snapshot, delta)

    def _usage_beside_claims(self, delta: Delta) -> Iterable[tuple[int, int, int]]:
        subtracted = self._subtracted
        if not subtracted:
            return delta.usage
        return [
            (provider_id, class_id, used + subtracted.get((provider_id, class_id), 0))
            for provider_id, class_id, used in delta.usage
        ]

    @contextmanager
    def held(self, snapshot: Snapshot) -> Iterator[None]:
        """While held, the snapshot stays as it is even across awaits."""
        if snapshot is not self._snapshot:
            # All went on with a copy of it: nobody changes this one any more.
            yield
            return
        self._holders += 1
        try:
            yield
        finally:
            if snapshot is self._snapshot:
                self._holders -= 1


def loaded(forest: TableColumns, names: Names | None) -> Snapshot:
    """A new snapshot of a whole forest, which is emptied.

    Thread and event loop keep it a little longer than they need it, in no certain order, and its
    memory is to be free when it is given back.
    """
    assert names is not None
    snapshot = Snapshot()
    snapshot.load(forest, names)
    forest.clear()
    warm(snapshot)
    return snapshot


def give_back_memory() -> None:
    """Free pages to the operating system: what rows were made of is free, but scattered among what
    stays, and glibc's malloc gives such pages back only when it is told to."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def is_large(delta: Delta) -> bool:
    """Whether it changes so many trees that taking it in would hold up the event loop."""
    if delta.forest is not None:
        return True
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
