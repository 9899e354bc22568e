"""Units in the ledger as the operator knows them: moved by its controllers, refreshed by others'.

Whatever moves a unit here tells the state at once; what other replicas, Placement clients and
schedulers do to the ledger is read again when its change log says that something happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import KubeApi
from dovetail.kube.machines.state import MachineState
from dovetail.ledger.machines.units import HeldUnit, UnitClaim
from dovetail.machines.names import POD_ROLE
from dovetail.machines.snapshot import UnitRecord
from dovetail.podfit.objects import Pod
from dovetail.service.machine_units import MachineLedger

LOG = structlog.get_logger("dovetail.kube.machines")

MOST_READS = 5
"""Of the ledger for one refresh, if units move meanwhile."""


class UnitLedger:
    def __init__(
        self,
        ledger: MachineLedger,
        state: MachineState,
        api: KubeApi,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_change` is called after a look that found something new."""
        self.ledger = ledger
        self._on_change = on_change
        self._api = api
        self._state = state
        self._cursor: str | None = None
        self._moves = 0
        """Begun and ended: a read that saw another number before and after may be old."""
        self._unadopted: dict[str, str] = {}
        """By uid of guests that are bound the group of the unit that they should have, and have not
        yet: others hold it, the ledger does not know the node, or its answer is to come."""

    # -- moves -----------------------------------------------------------------------------------

    async def move(self, take: Sequence[UnitClaim], release: Mapping[str, str]) -> None:
        """As the ledger's; `release` has the group of each uid. Raises UnitTaken."""
        async with self._moving():
            await self.ledger.move(take, list(release))
            self._released(release)
            self._taken(take)

    async def adopt(self, claim: UnitClaim) -> None:
        """As the ledger's; the group of one that is refused is planned again when the ledger
        changed. Raises UnitTaken."""
        self._unadopted[claim.consumer] = claim.group
        async with self._moving():
            await self.ledger.adopt(claim)
            self._taken([claim])
        self._unadopted.pop(claim.consumer, None)

    async def release(self, group: str, uids: Collection[str]) -> None:
        async with self._moving():
            await self.ledger.release(uids)
            self._released(dict.fromkeys(uids, group))

    @asynccontextmanager
    async def _moving(self) -> AsyncIterator[None]:
        self._moves += 1
        try:
            yield
        finally:
            self._moves += 1

    def _taken(self, take: Sequence[UnitClaim]) -> None:
        now = int(time.time())
        for each in take:
            there = self._state.units.get(each.group, {}).get(each.consumer)
            since = there.since if there is not None else now
            unit = UnitRecord(each.shape.name, each.node, each.is_stock, since)
            self._state.put_unit(each.group, each.consumer, unit)

    def _released(self, release: Mapping[str, str]) -> None:
        for uid, group in release.items():
            self._state.drop_unit(group, uid)

    # -- what others did -------------------------------------------------------------------------

    async def run(self, interval: float) -> None:
        """Look every so many seconds, until cancelled."""
        while True:
            try:
                await self.look()
            except DovetailError as error:
                LOG.warning("ledger not read", error=str(error))
            await asyncio.sleep(interval)

    async def look(self) -> None:
        """Read the ledger again if anything happened to it. Raises what the ledger raises."""
        cursor, changed = await self.ledger.changes(self._cursor)
        is_known = True
        if changed or self._cursor is None:
            is_known = await self.refresh()
            self._wake_unadopted()
            self._on_change()
        if is_known:
            self._cursor = cursor
        await self._look_for_holders()

    def _wake_unadopted(self) -> None:
        """Their plans note them again, if there still is something to adopt."""
        self._state.wake(set(self._unadopted.values()))
        self._unadopted.clear()

    async def refresh(self) -> bool:
        """Read the ledger again. False if units moved all the while: then nothing was learnt."""
        for _ in range(MOST_READS):
            before = self._moves
            units = await self.ledger.units()
            gpus = await self.ledger.gpus(list(self._state.owners))
            if before == self._moves:
                self._state.set_units(by_group(units))
                self._state.set_gpus_of_others(
                    {node: each.held_by_others for node, each in gpus.items()}
                )
                return True
        return False

    async def _look_for_holders(self) -> None:
        """A holder that is not in the cache may be new to it, or have gone while nobody led. Who
        had a unit when the ledger was read and is not there afterwards is no more."""
        unknown = self._state.unknown_holders()
        if unknown:
            there = await self._api.list(Pod, labels=POD_ROLE)
            self._state.give_up(unknown - {each.metadata.uid for each in there.items})


def by_group(units: Mapping[str, HeldUnit]) -> dict[str, dict[str, UnitRecord]]:
    found: dict[str, dict[str, UnitRecord]] = {}
    for uid, each in units.items():
        record = UnitRecord(each.type, each.node, each.is_stock, each.since)
        found.setdefault(each.group, {})[uid] = record
    return found
