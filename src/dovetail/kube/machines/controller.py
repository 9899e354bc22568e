"""Machine controller: judges, plans and carries out, one group at a time; the operator runs it.

Level-triggered: a group on the queue means that something about it may have changed, and whatever
it was, the plan is made of how things are now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from dovetail.aio.backoff import doubling
from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, KubeApi
from dovetail.kube.machines.acceptance import Accepted, record_name, record_of
from dovetail.kube.machines.executor import MOST_AT_ONCE, Executor, PlanProgress
from dovetail.kube.machines.judging import seller_of, standing_machines, world_of
from dovetail.kube.machines.metrics import PLANNING, UNITS
from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.telling import QueueKeeper, Teller
from dovetail.kube.machines.unit_ledger import UnitLedger
from dovetail.kube.machines.volumes import LOOK_SECONDS, GuestVolumes
from dovetail.kube.machines.writes import Writer
from dovetail.kube.runtime.conditions import as_documents, timestamp, with_condition
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.ledger.machines.stock import stock_of
from dovetail.machines.documents import Machine, MachineStatus
from dovetail.machines.leases import LeaseNotice, lent_seconds
from dovetail.machines.line import GuestLine, carried_out
from dovetail.machines.plan import plan_machine
from dovetail.machines.pods import group_of, is_gated_guest, line_order
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.status import ConditionFound, accepted_condition
from dovetail.machines.validation import findings
from dovetail.podfit.objects import ConfigMap, Pod

LOG = structlog.get_logger("dovetail.kube.machines")

STATUS_SECONDS = 0.2
"""Between two writes of the status of one Machine."""
FIRST_AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 0.02, 5.0
"""Before a plan that could not be carried out is made again."""
EVICTION_SECONDS = 5.0
"""Between two tries to evict a guest that a disruption budget protects."""


class MachineController:
    def __init__(
        self,
        api: KubeApi,
        state: MachineState,
        queue: WorkQueue,
        units: UnitLedger,
        *,
        teller: Teller,
        queues: QueueKeeper,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._state = state
        self._queue = queue
        self._units = units
        self._teller = teller
        self._queues = queues
        self._clock = clock
        self._writer = Writer(api, state)
        self._executor = Executor(state, units, self._writer, teller)
        self._volumes = GuestVolumes(api)
        self._stocked: dict[str, Accepted] = {}
        """By group: whose numbers the ledger has."""
        self._dropped: set[str] = set()
        """Groups that the ledger has no more."""
        self._written: dict[str, float] = {}
        """By Machine: when its status was last written."""
        self._judging = asyncio.Lock()
        self._outrun: dict[str, int] = {}
        """By group: how often in a row its plan could not be carried out as it was made."""
        self._shown: dict[str, set[tuple[str, str]]] = {}
        """By group: types and states that the metrics have."""
        self._evictions: dict[str, float] = {}
        """By uid: when a guest was last asked to go."""

    def begin(self) -> None:
        """A term begins: what another leader did since is not known."""
        self._stocked.clear()
        self._dropped.clear()

    def end(self) -> None:
        """The term is over: the next leader's numbers count."""
        for group in list(self._shown):
            self._show(group, ())

    async def work(self, group: str) -> None:
        machines = standing_machines(self._state, group)
        for machine in machines:
            await self._judge(machine)
        seller = seller_of(self._state, group)
        for machine in machines:
            if seller is None or machine.metadata.uid != seller[0].metadata.uid:
                await self._refused(machine)
        if seller is not None:
            await self._plan(*seller)
        else:
            await self._without_machine(group)

    # -- judging ---------------------------------------------------------------------------------

    async def _judge(self, machine: Machine) -> None:
        """Whether the newest specification is accepted, if that is not settled yet.

        One at a time: of two that want the same node, the second has to know of the first.
        """
        if not self._state.accepted.is_current(machine) or self._is_unrecorded(machine):
            async with self._judging:
                await self._settle(machine)

    def _is_unrecorded(self, machine: Machine) -> bool:
        """Whether somebody deleted what another replica would know the accepted one by."""
        return (ConfigMap.API.kind, record_name(machine.metadata.name)) in self._state.deleted

    async def _settle(self, machine: Machine) -> None:
        accepted = self._state.accepted
        faults = findings(machine, world_of(self._state, machine))
        if faults:
            accepted.refuse(machine, map(str, faults))
            for entry in machine.spec.node_pool:
                self._state.look_at_node(entry.name)
            self._teller.machine(machine, "Invalid", "; ".join(accepted.faults_of(machine)))
            return
        await self._writer.put(
            ConfigMap, record_name(machine.metadata.name), record_of(machine), None, machine
        )
        accepted.accept(machine)
        self._teller.machine(machine, "Accepted", "")
        self._state.own_nodes()
        # Whoever was refused for what this one had before may be right now.
        self._state.wake(
            each.group
            for each in self._state.machines.values()
            if each is not machine and not accepted.is_current(each)
        )

    async def _refused(self, machine: Machine) -> None:
        """Tell of a Machine that has never been accepted, or whose group is another's."""
        faults = self._state.accepted.faults_of(machine)
        found = (
            accepted_condition(faults),
            ConditionFound(
                "Ready", False, "NotAccepted", "the newest specification was not accepted"
            ),
        )
        status = {"observedGeneration": machine.metadata.generation}
        await self._write_status(machine, status, found)

    # -- planning --------------------------------------------------------------------------------

    async def _plan(self, machine: Machine, accepted: Accepted) -> None:
        group = machine.group
        if self._stocked.get(group) != accepted:
            await self._units.ledger.set_stock(group, stock_of(accepted.spec))
            self._dropped.discard(group)
            self._stocked[group] = accepted
        volumes = await self._volumes.of(group, self._state.guests_of(group))
        now = self._clock()
        started = perf_counter()
        snapshot = replace(self._state.snapshot(machine, accepted, now), volumes=volumes)
        plan = plan_machine(snapshot, MOST_AT_ONCE)
        PLANNING.observe(perf_counter() - started)
        progress = await self._executor.carry_out(snapshot, plan)
        self._teller.group(group, snapshot.guests, plan.waiting, plan.notices)
        line = carried_out(plan.line, self._state.units.get(group, {}))
        self._queues.tell(group, line, lent_seconds(snapshot.spec))
        for notice in plan.notices:
            await self._evict(notice)
        self._show(group, plan.status["availableMachines"])
        self._come_again(group, progress)
        await self._write_status(machine, plan.status, plan.conditions)
        if any(each.lacking for each in volumes.values()):
            self._queue.add_after(group, LOOK_SECONDS)
        if plan.look_again is not None:
            self._queue.add_after(group, max((plan.look_again - now).total_seconds(), 0.05))

    def _come_again(self, group: str, progress: PlanProgress) -> None:
        """At once where there is more to do, or where somebody was faster for the first time; later
        and later if that goes on, for what the ledger refuses may be held by others for long."""
        times = self._outrun.pop(group, 0)
        if progress is PlanProgress.OUTRUN:
            self._outrun[group] = times + 1
            wait = doubling(times, FIRST_AGAIN_SECONDS, LONGEST_AGAIN_SECONDS)
            self._queue.add_after(group, wait)
        elif progress is PlanProgress.PART:
            self._queue.add(group)

    async def _evict(self, notice: LeaseNotice) -> None:
        """Through the eviction API, where disruption budgets have their say."""
        meta, now = notice.pod.metadata, perf_counter()
        is_asked = now < self._evictions.get(meta.uid, -EVICTION_SECONDS) + EVICTION_SECONDS
        if not notice.evict or is_asked:
            return
        self._evictions = {
            uid: at for uid, at in self._evictions.items() if uid in self._state.pods
        } | {meta.uid: now}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": {"preconditions": {"uid": meta.uid}},
        }
        try:
            await self._api.create(Pod, body, namespace=meta.namespace, sub="eviction")
        except (ApiNotFound, ApiConflict):
            pass
        except ApiError as error:
            LOG.info("not evicted yet", pod=notice.pod.key, error=str(error))
            self._queue.add_after(group_of(notice.pod), EVICTION_SECONDS)

    async def _write_status(
        self, machine: Machine, status: dict[str, Any], found: tuple[ConditionFound, ...]
    ) -> None:
        """If it changed; not too often, for a Machine may sell hundreds of units a second."""
        before = machine.status
        generation = machine.metadata.generation
        conditions = before.conditions
        now = timestamp(self._clock())
        for each in found:
            conditions = with_condition(
                conditions,
                each.type,
                each.status,
                each.reason,
                each.message,
                generation=generation,
                now=now,
            )
        wanted = {**status, "conditions": as_documents(conditions)}
        if not differs(wanted, before):
            return
        name, at = machine.metadata.name, perf_counter()
        wait = self._written.get(name, -STATUS_SECONDS) + STATUS_SECONDS - at
        if wait > 0:
            self._queue.add_after(machine.group, wait)
            return
        try:
            await self._writer.write_status(machine, wanted)
        except ApiConflict:
            self._queue.add_after(machine.group, STATUS_SECONDS)
        except ApiNotFound:
            pass
        self._written[name] = at

    def _show(self, group: str, machines: Iterable[Mapping[str, Any]]) -> None:
        """In the metrics; types that are no more leave them."""
        shown = {
            (each["name"], state): count
            for each in machines
            for state, count in each["usage"].items()
        }
        for labels in self._shown.get(group, set()) - shown.keys():
            UNITS.remove(group, *labels)
        for labels, count in shown.items():
            UNITS.labels(group, *labels).set(count)
        self._shown[group] = set(shown)

    # -- without a Machine -----------------------------------------------------------------------

    async def _without_machine(self, group: str) -> None:
        """Guests of a group that nobody sells are told so; what those held who are gone is free."""
        self._show(group, ())
        guests = self._state.guests_of(group)
        machines = self._state.machines_of(group)
        why = (
            Waiting(WaitReason.NOT_ACCEPTED, f"the Machine of group {group!r} is not accepted")
            if machines
            else Waiting(WaitReason.UNKNOWN_MACHINE, f"there is no Machine of group {group!r}")
        )
        gated = {uid: why for uid, pod in guests.items() if is_gated_guest(pod)}
        self._teller.group(group, guests, gated)
        self._tell_unsold(group, gated)
        over = self._state.holders_over(group)
        if over:
            await self._units.release(group, over)
        await self._drop_orphans(group)
        if not machines and group not in self._dropped:
            self._stocked.pop(group, None)
            if await self._units.ledger.drop_group(group):
                self._dropped.add(group)

    def _tell_unsold(self, group: str, gated: Mapping[str, Waiting]) -> None:
        """The queue of a group that nobody sells goes with the last of its guests."""
        guests, units = self._state.guests_of(group), self._state.units.get(group, {})
        line = GuestLine(
            waiting=tuple(sorted((guests[uid] for uid in gated), key=line_order)),
            reasons=gated,
            holders=tuple(pod for uid, pod in guests.items() if uid in units),
        )
        if line.waiting or line.holders:
            self._queues.tell(group, line, {})
        else:
            self._queues.drop(group)

    async def _drop_orphans(self, group: str) -> None:
        """Objects of Machines that are no more: the garbage collector would come to them later."""
        uids = {each.metadata.uid for each in self._state.machines.values()}
        for kind, there in self._state.owned_by(group):
            # A list: what goes leaves the cache while the next one is deleted.
            for found in list(there.values()):
                owners = {
                    each.uid
                    for each in found.metadata.owner_references
                    if each.kind == Machine.API.kind
                }
                if owners and not owners & uids and found.metadata.deletion_timestamp is None:
                    await self._writer.drop(kind, found.metadata.name)


def differs(wanted: dict[str, Any], before: MachineStatus) -> bool:
    """Whether a merge of what is wanted would change the status."""
    return msgspec.convert({**msgspec.to_builtins(before), **wanted}, MachineStatus) != before
