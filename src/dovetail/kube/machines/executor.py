"""Executor: carries a plan out, the ledger first, in an order that any crash may interrupt.

    step                       a crash after it leaves
    1 units given back         stock that the next plan places
    2 guests' units taken      a guest with a unit behind its gate: the next plan goes on with 3
    3 objects written          sleepers fewer than replicas once were: nothing is given to others
    4 guests nominated         room that the scheduler keeps for them, if they come
    5 sleepers deleted         room that the ledger still has for the guest
    6 gates of guests lifted   sleepers without a place: the next plan goes on with 7
    7 stock taken and lifted   nothing

A refusal of the ledger ends the plan: somebody else was faster, and the next plan knows of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from time import perf_counter
from typing import Any

import structlog

from dovetail.kube.api.port import ApiConflict
from dovetail.kube.machines.metrics import HAND_OVER, SALES
from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.telling import Teller
from dovetail.kube.machines.unit_ledger import UnitLedger
from dovetail.kube.machines.writes import Writer
from dovetail.ledger.machines.units import UnitClaim, UnitTaken
from dovetail.machines.documents import Machine, MachineShape
from dovetail.machines.placement_rules import lacking_tolerations
from dovetail.machines.plan import MachinePlan, PutObject
from dovetail.machines.pods import type_of, user_of
from dovetail.machines.selling.seller import Sale, UnitOrder, is_pinned
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.stock.places import StockPlace
from dovetail.machines.stock.sleepers import Sleeper
from dovetail.podfit.objects import KubeObject, Pod, Service, StatefulSet

LOG = structlog.get_logger("dovetail.kube.machines")

TOGETHER = 16
"""Writes to the API server at a time: more make it no faster, and others wait longer."""
MOST_AT_ONCE = 64
"""Units that one plan sells, and sleepers that it places: whoever comes meanwhile, and is before
others in line, waits for so many at the most. The ledger makes them durable together."""


class PlanOutdated(Exception):
    """The ledger or the API server knew better: plan again."""


class PlanProgress(Enum):
    """What has become of a plan."""

    DONE = "done"
    PART = "part"
    """There was more than is done at once: the next plan has the rest."""
    OUTRUN = "outrun"
    """Somebody was faster: the next plan knows of it."""


class Executor:
    def __init__(
        self, state: MachineState, units: UnitLedger, writer: Writer, teller: Teller
    ) -> None:
        self._state = state
        self._units = units
        self._writer = writer
        self._teller = teller

    async def carry_out(self, snapshot: MachineSnapshot, plan: MachinePlan) -> PlanProgress:
        machine, shapes = snapshot.machine, shapes_of(snapshot.spec)
        started = perf_counter()
        if plan.releases:
            await self._units.release(machine.group, plan.releases)
        await self._adopt(machine, plan, shapes)
        await all_done(self._writer.nominate(pod, "") for pod in plan.withdrawals)
        sold = await all_done(
            (self._sell(machine, sale, shapes) for sale in plan.sales), MOST_AT_ONCE
        )
        if not sold:
            await self._units.refresh()
            return PlanProgress.OUTRUN
        await all_done(self._put(machine, each, snapshot) for each in plan.puts)
        await all_done(self._writer.drop(each.kind, each.name) for each in plan.drops)
        removed = [pod for pod, _ in plan.removals]
        await all_done(self._writer.delete_sleeper(pod) for pod in removed)
        lifted = await all_done(
            (
                *(self._hand_over(machine, sale, shapes, started) for sale in plan.sales),
                *(self._lift(machine, pod, node, shapes) for pod, node in plan.lifts),
            )
        )
        await self._give_back(machine.group, removed)
        places = plan.stock.places[:MOST_AT_ONCE]
        placed = await all_done(self._place(machine, each, shapes[each.type]) for each in places)
        if not (lifted and placed):
            return PlanProgress.OUTRUN
        is_part = plan.is_part or len(places) < len(plan.stock.places)
        return PlanProgress.PART if is_part else PlanProgress.DONE

    # -- the ledger ------------------------------------------------------------------------------

    async def _sell(self, machine: Machine, sale: Sale, shapes: Mapping[str, UnitShape]) -> None:
        take = [
            self._claim(machine, each.pod, shapes[each.type], each.node) for each in sale.orders
        ]
        release = {each.uid: machine.group for each in sale.victims}
        try:
            await self._units.move(take, release)
        except UnitTaken as error:
            SALES.labels("refused").inc()
            LOG.info("sale refused", group=machine.group, error=str(error))
            raise PlanOutdated from error
        for each in sale.orders:
            SALES.labels("sold").inc()
            self._teller.sold(each.pod, each.type, each.node)

    async def _adopt(
        self, machine: Machine, plan: MachinePlan, shapes: Mapping[str, UnitShape]
    ) -> None:
        for pod in plan.adoptions:
            shape = shapes.get(type_of(pod))
            if shape is None:
                continue
            try:
                await self._units.adopt(self._claim(machine, pod, shape, pod.spec.node_name))
            except UnitTaken as error:
                self._teller.conflict(pod, str(error))
        for each in plan.stock_adoptions:
            await self._adopt_sleeper(machine, each, shapes[each.type])

    async def _adopt_sleeper(self, machine: Machine, sleeper: Sleeper, shape: UnitShape) -> None:
        try:
            await self._units.move([stock_claim(machine, sleeper.pod, shape, sleeper.node)], {})
        except UnitTaken as error:
            LOG.warning("sleeper holds what others have", pod=sleeper.pod.key, error=str(error))
            await self._writer.delete_sleeper(sleeper.pod)

    async def _give_back(self, group: str, sleepers: Sequence[Pod]) -> None:
        """Units of sleepers that were deleted: others can have their place at once."""
        held = self._state.units.get(group, {})
        uids = [pod.metadata.uid for pod in sleepers if pod.metadata.uid in held]
        if uids:
            await self._units.release(group, uids)

    async def _place(self, machine: Machine, place: StockPlace, shape: UnitShape) -> None:
        try:
            await self._units.move([stock_claim(machine, place.pod, shape, place.node)], {})
        except UnitTaken as error:
            LOG.info("stock refused", group=machine.group, error=str(error))
            await self._units.refresh()
            raise PlanOutdated from error
        await self._lift(machine, place.pod, place.node, {})

    def _claim(self, machine: Machine, pod: Pod, shape: UnitShape, node: str) -> UnitClaim:
        meta = pod.metadata
        return UnitClaim(
            consumer=meta.uid,
            group=machine.group,
            shape=shape,
            node=node,
            namespace=meta.namespace,
            user=user_of(pod, self._state.namespaces.get(meta.namespace)),
        )

    # -- the API server --------------------------------------------------------------------------

    async def _hand_over(
        self, machine: Machine, sale: Sale, shapes: Mapping[str, UnitShape], started: float
    ) -> None:
        """Steps 4 to 6, of one sale: nobody waits for the room of others."""
        pods = await asyncio.gather(*(self._nominated(each, sale) for each in sale.orders))
        await asyncio.gather(*(self._writer.delete_sleeper(each.pod) for each in sale.victims))
        lifted = await all_done(
            self._lift(machine, pod, order.node, shapes)
            for pod, order in zip(pods, sale.orders, strict=True)
        )
        if not lifted:
            raise PlanOutdated
        HAND_OVER.observe(perf_counter() - started)

    async def _nominated(self, order: UnitOrder, sale: Sale) -> Pod:
        """The guest as it is once the scheduler keeps its room; where no sleeper goes for it, there
        is room anyway, but none is kept elsewhere."""
        is_elsewhere = order.pod.status.nominated_node_name not in ("", order.node)
        if not is_elsewhere and not (sale.victims and is_pinned(order.pod)):
            return order.pod
        return await self._writer.nominate(order.pod, order.node)

    async def _put(self, machine: Machine, put: PutObject, snapshot: MachineSnapshot) -> None:
        there: dict[type[KubeObject], Any] = {
            StatefulSet: snapshot.stateful_sets,
            Service: snapshot.services,
            MachineShape: snapshot.shapes,
        }
        found = there[put.kind].get(put.name) if put.kind in there else snapshot.pool
        await self._writer.put(put.kind, put.name, put.body, found, machine)

    async def _lift(
        self, machine: Machine, pod: Pod, node: str, shapes: Mapping[str, UnitShape]
    ) -> None:
        shape, there = shapes.get(type_of(pod)), self._state.pods.get(pod.metadata.uid, pod)
        lacking = [] if shape is None else lacking_tolerations(there, shape, machine.group)
        try:
            await self._writer.lift(pod, node, pin=is_pinned(pod), tolerations=lacking)
        except ApiConflict as error:
            # It changed since it was read: the next plan has it as it is.
            raise PlanOutdated from error


def stock_claim(machine: Machine, pod: Pod, shape: UnitShape, node: str) -> UnitClaim:
    return UnitClaim(consumer=pod.metadata.uid, group=machine.group, shape=shape, node=node)


async def all_done(work: Iterable[Coroutine[Any, Any, object]], together: int = TOGETHER) -> bool:
    """Do it all, so much at a time; False if some was outrun. Raises the first other error, when
    all ended."""
    turns = asyncio.Semaphore(together)

    async def done(each: Coroutine[Any, Any, object]) -> None:
        async with turns:
            await each

    outcomes = await asyncio.gather(*map(done, work), return_exceptions=True)
    errors = [each for each in outcomes if isinstance(each, BaseException)]
    for error in errors:
        if not isinstance(error, PlanOutdated):
            raise error
    return not errors
