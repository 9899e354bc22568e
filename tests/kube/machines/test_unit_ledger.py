"""Units as the operator knows them, while they move."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.unit_ledger import UnitLedger
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.ledger import Ledger
from dovetail.ledger.machines.units import HeldUnit
from dovetail.machines.snapshot import StockSettings
from dovetail.service.machine_units import MachineLedger
from tests.service.machine_world import GROUP, guest, shape, stock
from tests.support.kube.memory import MemoryApi


class RestlessLedger(MachineLedger):
    """In which a unit moves whenever it is read."""

    moving: UnitLedger | None = None

    async def units(self) -> Mapping[str, HeldUnit]:
        found = await super().units()
        if self.moving is not None:
            await self.moving.release(GROUP, [])
        return found


async def test_what_could_not_be_read_because_units_moved_is_read_at_the_next_look(
    ledger: Ledger,
) -> None:
    """Even if nothing happens in between."""
    restless, large = RestlessLedger(ledger), shape()
    await restless.enter_node("n1", 8, 64 * 1024, [])
    await restless.set_stock(GROUP, stock(2, large))
    state = MachineState(
        StockSettings(),
        groups=WorkQueue("groups"),
        nodes=WorkQueue("nodes"),
        pools=WorkQueue("pools"),
    )
    units = UnitLedger(restless, state, MemoryApi())
    await units.look()
    await MachineLedger(ledger).move([guest(large)])
    restless.moving = units
    await units.look()
    assert not state.units.get(GROUP)
    restless.moving = None
    await units.look()
    assert len(state.units[GROUP]) == 1
