"""The operator on an API in memory: what it does while caches and other parts of it move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import msgspec
from structlog.testing import capture_logs

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.kube.machines.executor import MOST_AT_ONCE
from dovetail.kube.machines.operator import OperatorReplica
from dovetail.kube.runtime.events import Recorder
from dovetail.ledger import (
    Cursor,
    Ledger,
    Transaction,
    claims,
    devices,
    inventories,
    providers,
)
from dovetail.ledger.database.protocol import LedgerBusy
from dovetail.ledger.machines import queue
from dovetail.ledger.machines.queue import GroupQueue
from dovetail.ledger.machines.units import UnitClaim, UnitTaken
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.names import (
    ENABLED,
    GUEST,
    INJECT_RESOURCE,
    MACHINE_GROUP,
    NODE_POOL,
    POD_ROLE,
    READY,
    RESERVATION,
    STOCK_GATE,
    UNIT_GATE,
    role_labels,
    type_key,
)
from dovetail.machines.objects import sleeper_template
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.objects import ConfigMap, Namespace, Node, Pod, Service, StatefulSet
from dovetail.service.machine_units import MachineLedger
from dovetail.telemetry.metrics import METRICS
from tests.machines.building import machine, namespace, node
from tests.support.kube.memory import MemoryApi

TYPES = 6
OWNED = (StatefulSet, Service, ConfigMap, MachineShape, MachineNodePool)


def spec_of(types: int, available: int = 2) -> dict[str, Any]:
    """A node for each type."""
    names = [f"type-{number}" for number in range(types)]
    return {
        "nodePool": [{"name": f"n-{name}", "machineType": [{"name": name}]} for name in names],
        "machineTypes": [
            {"name": name, "spec": {"cpu": 1, "memory": "1Gi"}, "available": available}
            for name in names
        ],
    }


@asynccontextmanager
async def operator(
    api: MemoryApi, ledger: Ledger, units: MachineLedger | None = None
) -> AsyncIterator[OperatorReplica]:
    replica = OperatorReplica(
        api, units or MachineLedger(ledger), Recorder(api, "operator", "one"), StockSettings()
    )
    stop = asyncio.Event()
    running = asyncio.create_task(replica.run(stop))
    try:
        yield replica
    finally:
        stop.set()
        await running


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def create_machine(api: MemoryApi, types: int = TYPES, available: int = 2) -> None:
    for number in range(types):
        await api.create(Node, msgspec.to_builtins(node(f"n-type-{number}")))
    await api.create(Machine, msgspec.to_builtins(machine(spec_of(types, available), "lab", "lab")))


async def create_pods(api: MemoryApi, count: int, role: str, namespace: str) -> None:
    """As admission leaves them, and the StatefulSet: behind their gate."""
    group, of = "lab", "type-0"
    shape = shapes_of(machine(spec_of(1), "lab", group).spec)[of]
    template = sleeper_template(shape, group, StockSettings())
    gate = UNIT_GATE if role == GUEST else STOCK_GATE
    for number in range(count):
        meta = {"name": f"{of}-{group}-{number}", "labels": role_labels(group, of, role)}
        spec = {**template["spec"], "schedulingGates": [{"name": gate}]}
        await api.create(Pod, {"metadata": meta, "spec": spec}, namespace=namespace)


def let_go(api: MemoryApi, role: str) -> int:
    return sum(
        each.metadata.labels.get(POD_ROLE) == role and not each.spec.scheduling_gates
        for each in api.everything(Pod).values()
    )


def marked(api: MemoryApi) -> int:
    return sum(MACHINE_GROUP in each.metadata.annotations for each in api.everything(Node).values())


async def test_a_machine_of_many_types_goes_without_a_step_that_fails(ledger: Ledger) -> None:
    """Its objects leave the caches while they are deleted, and its nodes are let go by the pool
    and by themselves at the same time."""
    api = MemoryApi()
    with capture_logs() as logs:
        async with operator(api, ledger):
            await create_machine(api)
            await until(lambda: len(api.everything(StatefulSet)) == TYPES and marked(api) == TYPES)
            await api.delete(Machine, "lab")
            await until(lambda: not any(api.everything(kind) for kind in OWNED))
            await until(lambda: marked(api) == 0)
            units = MachineLedger(ledger)
            async with asyncio.timeout(20):
                while await units.nodes():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    assert [each for each in logs if each["event"] == "work failed"] == []


class SlowToEnter(MachineLedger):
    """Its answers come in the order in which two that look after one node hurt each other: it
    leaves before it was entered, and whoever had it leave learns of that after it was entered."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.is_entering, self.is_entered, self._is_left = (asyncio.Event() for _ in range(3))

    async def enter_node(self, node: str, *has: Any, is_ready: bool = True) -> None:
        self.is_entering.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_left.wait(), 1)
        await super().enter_node(node, *has, is_ready=is_ready)
        self.is_entered.set()

    async def leave_node(self, node: str) -> bool:
        is_empty = await super().leave_node(node)
        self._is_left.set()
        await self.is_entered.wait()
        return is_empty


async def test_a_node_that_is_entered_while_its_pool_goes_leaves_the_ledger(ledger: Ledger) -> None:
    api, units = MemoryApi(), SlowToEnter(ledger)
    async with operator(api, ledger, units):
        await create_machine(api, types=1)
        await units.is_entering.wait()
        await api.delete(Machine, "lab")
        await until(lambda: marked(api) == 0 and not api.everything(MachineNodePool))
        await units.is_entered.wait()
        async with asyncio.timeout(20):
            while await units.nodes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_node_leaves_the_ledger_with_its_last_guest(ledger: Ledger) -> None:
    """Of a Machine that is deleted while a unit is held there."""
    api, units = MemoryApi(), MachineLedger(ledger)
    await api.create(Namespace, msgspec.to_builtins(namespace("team", {INJECT_RESOURCE: ENABLED})))
    async with operator(api, ledger):
        await create_machine(api, types=1)
        await until(lambda: marked(api) == 1)
        await api.create(Pod, guest("held"), namespace="team")
        while not await units.units():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await api.delete(Machine, "lab")
        await until(lambda: marked(api) == 0)
        assert await units.nodes() == {"n-type-0"}
        await api.delete(Pod, "held", "team", grace=0)
        while await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not await units.units()


class WatchedLedger(MachineLedger):
    """The operator's, which can be held up in the midst of what it does."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.looks: list[bool] = []
        """Whether each found a change."""
        self.leaves: list[bool] = []
        """What leaving a node came to."""
        self.refusals = 0
        """Of units that guests have already."""
        self.before_enter: Callable[[], bool] = lambda: True
        self.after_release: Callable[[], bool] = lambda: True
        self.after_leave: Callable[[bool], bool] = lambda _: True
        self.is_cut_off = False

    async def changes(self, cursor: Cursor | None) -> tuple[Cursor, bool]:
        after, changed = await super().changes(cursor)
        self.looks.append(changed)
        return after, changed

    async def adopt(self, unit: UnitClaim) -> None:
        try:
            await super().adopt(unit)
        except UnitTaken:
            self.refusals += 1
            raise

    async def release(self, consumers: Collection[str]) -> None:
        await super().release(consumers)
        await until(self.after_release)

    async def leave_node(self, node: str) -> bool:
        is_left = await super().leave_node(node)
        self.leaves.append(is_left)
        await until(lambda: self.after_leave(is_left))
        return is_left

    async def enter_node(
        self,
        node: str,
        vcpu: int,
        memory_mb: int,
        devices: Sequence[Device],
        *,
        is_ready: bool = True,
    ) -> None:
        await until(self.before_enter)
        await super().enter_node(node, vcpu, memory_mb, devices, is_ready=is_ready)
        if self.is_cut_off:
            raise DovetailError("no answer")

    async def until_empty(self) -> None:
        async with asyncio.timeout(20):
            while await self.nodes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def until_still(self) -> None:
        """Two looks in a row found nothing new."""
        count = len(self.looks)
        await until(lambda: len(self.looks) > count + 1 and self.is_still())

    def is_still(self) -> bool:
        return self.looks[-2:] == [False, False]


async def test_a_node_leaves_the_ledger_even_if_a_look_there_tells_first_that_its_guest_went(
    ledger: Ledger,
) -> None:
    """Before whoever gives the unit back has heard that it did."""
    api, units = MemoryApi(), WatchedLedger(ledger)
    await api.create(Namespace, msgspec.to_builtins(namespace("team", {INJECT_RESOURCE: ENABLED})))
    async with operator(api, ledger, units) as replica:
        await create_machine(api, types=1)
        await until(lambda: marked(api) == 1)
        await api.create(Pod, guest("held"), namespace="team")
        await until(lambda: bool(replica.state.units.get("lab")))
        await api.delete(Machine, "lab")
        await until(lambda: marked(api) == 0 and units.leaves == [False])
        units.after_release = lambda: not replica.state.units.get("lab")
        await api.delete(Pod, "held", "team", grace=0)
        await units.until_empty()


async def test_a_node_leaves_the_ledger_when_a_client_of_placement_lets_it_go(
    ledger: Ledger,
) -> None:
    """And as long as that holds it, and nothing else happens, nothing is written."""
    api, units, other = MemoryApi(), WatchedLedger(ledger), str(uuid4())
    async with operator(api, ledger, units):
        await create_machine(api, types=1)
        await until(lambda: marked(api) == 1)
        while not await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ledger.write(lambda tx: take_memory(tx, other)).result()
        await api.delete(Machine, "lab")
        await until(lambda: False in units.leaves)
        await units.until_still()
        before = list(units.leaves)
        await units.until_still()
        assert units.leaves == before
        assert await units.nodes() == {"n-type-0"}
        ledger.write(lambda tx: let_memory_go(tx, other)).result()
        await units.until_empty()


async def test_a_node_leaves_the_ledger_even_if_it_is_let_go_while_it_is_looked_at(
    ledger: Ledger,
) -> None:
    """The change is seen before the answer is: that somebody holds it still."""
    api, units, other = MemoryApi(), WatchedLedger(ledger), str(uuid4())
    looks = 0

    def is_released_and_seen(is_left: bool) -> bool:
        nonlocal looks
        if not is_left and not looks:
            looks = len(units.looks)
            ledger.write(lambda tx: let_memory_go(tx, other)).result()
        return is_left or (len(units.looks) > looks + 2 and not any(units.looks[-1:]))

    async with operator(api, ledger, units):
        await create_machine(api, types=1)
        await until(lambda: marked(api) == 1)
        while not await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ledger.write(lambda tx: take_memory(tx, other)).result()
        units.after_leave = is_released_and_seen
        await api.delete(Machine, "lab")
        await units.until_empty()


async def test_a_node_leaves_the_ledger_even_if_nobody_heard_that_it_was_entered(
    ledger: Ledger,
) -> None:
    api, units = MemoryApi(), WatchedLedger(ledger)
    units.is_cut_off = True
    async with operator(api, ledger, units):
        await create_machine(api, types=1)
        while not await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await api.delete(Machine, "lab")
        await units.until_empty()


async def test_a_guest_has_its_unit_as_soon_as_the_ledger_knows_its_node(ledger: Ledger) -> None:
    """It ran there before the Machine was."""
    api, units = MemoryApi(), WatchedLedger(ledger)
    units.before_enter = lambda: units.refusals > 0 and units.is_still()
    await api.create(Namespace, msgspec.to_builtins(namespace("team", {INJECT_RESOURCE: ENABLED})))
    await api.create(Pod, guest("held"), namespace="team")
    async with operator(api, ledger, units) as replica:
        await create_machine(api, types=1)
        await until(lambda: bool(replica.state.units.get("lab")))


async def test_a_guest_has_its_unit_as_soon_as_others_let_go_of_its_node(ledger: Ledger) -> None:
    api, units, other = MemoryApi(), WatchedLedger(ledger), str(uuid4())
    await api.create(Namespace, msgspec.to_builtins(namespace("team", {INJECT_RESOURCE: ENABLED})))
    async with operator(api, ledger, units) as replica:
        await create_machine(api, types=1)
        while not await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ledger.write(lambda tx: take_memory(tx, other)).result()
        await api.create(Pod, guest("held"), namespace="team")
        await until(lambda: units.refusals > 0)
        await units.until_still()
        before = units.refusals
        await units.until_still()
        assert units.refusals == before
        ledger.write(lambda tx: let_memory_go(tx, other)).result()
        await until(lambda: bool(replica.state.units.get("lab")))


def take_memory(tx: Transaction, consumer: str) -> None:
    """All of the node, for somebody of whom the cluster knows nothing."""
    (uuid,) = devices.places(tx, ["n-type-0"]).values()
    total = inventories.of_provider(tx, providers.get(tx, uuid))["MEMORY_MB"].inventory.total
    claim = Claim(
        consumer=consumer,
        project="p",
        user="u",
        consumer_type="VM",
        allocations={uuid: {"MEMORY_MB": total}},
    )
    claims.replace(tx, [claim])


def let_memory_go(tx: Transaction, consumer: str) -> None:
    claims.replace(
        tx,
        [Claim(consumer=consumer, project="p", user="u", allocations={}, check_generation=False)],
    )


async def test_who_went_while_nobody_led_is_looked_for_and_gives_its_unit_back(
    ledger: Ledger,
) -> None:
    """Not after a while: those who wait would wait for nothing."""
    api, units = MemoryApi(), MachineLedger(ledger)
    await api.create(Namespace, msgspec.to_builtins(namespace("team", {INJECT_RESOURCE: ENABLED})))
    async with operator(api, ledger):
        await create_machine(api, types=1)
        await api.create(Pod, guest("held"), namespace="team")
        while not await units.units():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await api.delete(Pod, "held", "team", grace=0)
    async with operator(api, ledger), asyncio.timeout(8):
        while await units.units():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_units_leave_the_metrics_with_their_machine(ledger: Ledger) -> None:
    def are_shown() -> bool:
        return b'machines_units{group="shown"' in METRICS.page()

    api = MemoryApi()
    await api.create(Node, msgspec.to_builtins(node("n-type-0")))
    async with operator(api, ledger):
        await api.create(Machine, msgspec.to_builtins(machine(spec_of(1), "shown", "shown")))
        await until(are_shown)
        await api.delete(Machine, "shown")
        await until(lambda: not are_shown())


async def test_units_leave_the_metrics_when_the_leader_ends(ledger: Ledger) -> None:
    def are_shown() -> bool:
        return b'machines_units{group="led"' in METRICS.page()

    api = MemoryApi()
    await api.create(Node, msgspec.to_builtins(node("n-type-0")))
    await api.create(Machine, msgspec.to_builtins(machine(spec_of(1), "led", "led")))
    async with operator(api, ledger):
        await until(are_shown)
    assert not are_shown()


async def test_a_node_that_changes_in_nothing_of_ours_has_nothing_written(ledger: Ledger) -> None:
    """Kubelets write to their nodes all the time."""
    api = MemoryApi()
    await create_machine(api, 1)
    told = [("merge status", "Machine"), ("merge status", "MachineNodePool")]

    def is_unready() -> bool:
        pools = api.everything(MachineNodePool).values()
        return any(each.condition == "NotReady" for pool in pools for each in pool.status.node_pool)

    async with operator(api, ledger):
        await until(lambda: all(api.calls[each] for each in told) and marked(api) == 1)
        await asyncio.sleep(0.5)
        before = [api.calls[each] for each in told]
        for number in range(5):
            await api.merge(Node, "n-type-0", {"metadata": {"labels": {"other": str(number)}}})
            await asyncio.sleep(0.3)
        assert [api.calls[each] for each in told] == before
        await api.merge(Node, "n-type-0", {"spec": {"unschedulable": True}})
        await until(is_unready)


def of_imperator() -> dict[str, Any]:
    """The node of the first type, marked by who ran the Machine before."""
    labels = {type_key("type-0"): "lab", NODE_POOL: READY}
    found: dict[str, Any] = msgspec.to_builtins(node("n-type-0", labels=labels))
    found["metadata"]["annotations"] = {MACHINE_GROUP: "lab"}
    return found


async def test_marks_that_are_right_already_stay_while_the_machine_is_judged(
    ledger: Ledger,
) -> None:
    api = MemoryApi()
    await api.create(Node, of_imperator())
    await api.create(Machine, msgspec.to_builtins(machine(spec_of(1), "lab", "lab")))
    async with operator(api, ledger):
        await until(lambda: len(api.everything(StatefulSet)) == 1)
        units = MachineLedger(ledger)
        while not await units.nodes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert {verb for verb, kind in api.calls if kind == "Node"} == {"create", "list", "watch"}


async def test_marks_go_when_the_machine_is_refused(ledger: Ledger) -> None:
    api = MemoryApi()
    await api.create(Node, of_imperator())
    await api.create(Machine, msgspec.to_builtins(machine(spec_of(2), "lab", "lab")))
    async with operator(api, ledger):
        await until(lambda: marked(api) == 0)


def guest(name: str) -> dict[str, Any]:
    """On the node of the first type already."""
    amounts = {"cpu": "2", "memory": "4Gi"}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "metadata": {"name": name, "labels": role_labels("lab", "type-0", GUEST)},
        "spec": {"nodeName": "n-type-0", "containers": [container]},
        "status": {"phase": "Running"},
    }


async def test_more_than_one_plan_does_at_once_is_placed_and_sold(ledger: Ledger) -> None:
    api, count = MemoryApi(), MOST_AT_ONCE + 10
    async with operator(api, ledger):
        await create_machine(api, types=1, available=count)
        await until(lambda: len(api.everything(StatefulSet)) == 1)
        await create_pods(api, count, RESERVATION, "dovetail")
        await until(lambda: let_go(api, RESERVATION) == count)
        await create_pods(api, count, GUEST, "team")
        await until(lambda: let_go(api, GUEST) == count)
        held = await MachineLedger(ledger).units()
    assert len(held) == count
    assert not any(each.is_stock for each in held.values())


async def test_what_the_ledger_refuses_is_asked_for_later_and_later(ledger: Ledger) -> None:
    """A client of Placement has all memory of the node, of which the cluster knows nothing."""
    api = MemoryApi()
    await create_machine(api, 1)

    with capture_logs() as logs:
        async with operator(api, ledger):
            units = MachineLedger(ledger)
            while not await units.nodes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            ledger.write(lambda tx: take_memory(tx, str(uuid4()))).result()
            await create_pods(api, 2, RESERVATION, "dovetail")
            await until(lambda: sum(each["event"] == "stock refused" for each in logs) > 2)
            await asyncio.sleep(1)
    assert let_go(api, RESERVATION) == 0
    assert sum(each["event"] == "stock refused" for each in logs) < 40


# -- who waits -------------------------------------------------------------------------------------


def told(ledger: Ledger) -> dict[str, GroupQueue]:
    """By group."""
    found = ledger.read(queue.every).result()
    return {group: each.queue for (_, group), each in found.items()}


def reasons(ledger: Ledger, group: str = "lab") -> list[str | None]:
    found = told(ledger).get(group)
    return [] if found is None else [each.reason for each in found.guests]


async def test_the_ledger_has_who_waits_and_why(ledger: Ledger) -> None:
    """In line; who is on its node is a holder with a name, for as long as the type is lent."""
    api = MemoryApi()
    await api.create(Node, msgspec.to_builtins(node("n-type-0")))
    spec = spec_of(1)
    spec["machineTypes"][0] |= {"available": 1, "maxDuration": "1h"}
    await api.create(Machine, msgspec.to_builtins(machine(spec, "lab", "lab")))
    async with operator(api, ledger):
        await create_pods(api, 3, GUEST, "team")
        await until(lambda: reasons(ledger) == ["BeingSold", "SoldOut", "SoldOut"])
        found = told(ledger)["lab"]
        assert found.waiting == {"type-0": 3}
        assert found.lent_seconds == {"type-0": 3600}
        (sold,) = await MachineLedger(ledger).units()
        assert found.guests[0].uid == sold
        binding = {"metadata": {"name": "type-0-lab-0"}, "target": {"name": "n-type-0"}}
        await api.create(Pod, binding, namespace="team", sub="binding")
        await until(lambda: reasons(ledger) == ["SoldOut", "SoldOut"])
        assert told(ledger)["lab"].pods == {sold: "type-0-lab-0"}
        await api.delete(Pod, "type-0-lab-1", "team", grace=0)
        await until(lambda: reasons(ledger) == ["SoldOut"])


async def test_a_queue_goes_with_the_last_guest_of_a_group_that_nobody_sells(
    ledger: Ledger,
) -> None:
    api = MemoryApi()
    async with operator(api, ledger):
        await create_machine(api, types=1, available=1)
        await until(lambda: "lab" in told(ledger))
        await create_pods(api, 2, GUEST, "team")
        await until(lambda: reasons(ledger) == ["BeingSold", "SoldOut"])
        await api.delete(Machine, "lab")
        await until(lambda: reasons(ledger) == ["UnknownMachine"])
        for number in range(2):
            await api.delete(Pod, f"type-0-lab-{number}", "team", grace=0)
        await until(lambda: told(ledger) == {})


async def test_a_queue_of_whom_nobody_is_left_goes_with_the_next_leader(ledger: Ledger) -> None:
    api = MemoryApi()
    async with operator(api, ledger):
        await create_pods(api, 1, GUEST, "team")
        await until(lambda: reasons(ledger) == ["UnknownMachine"])
    await api.delete(Pod, "type-0-lab-0", "team", grace=0)
    assert told(ledger)
    async with operator(api, ledger):
        await until(lambda: told(ledger) == {})


async def test_who_was_refused_by_the_ledger_is_not_told_to_have_a_unit(ledger: Ledger) -> None:
    """A client of Placement has all memory of the node, of which the cluster knows nothing."""
    api, units = MemoryApi(), MachineLedger(ledger)
    told_ever: set[str | None] = set()

    def is_seen_again() -> bool:
        told_ever.update(reasons(ledger))
        return sum(each["event"] == "sale refused" for each in logs) > 4 and bool(told_ever)

    with capture_logs() as logs:
        async with operator(api, ledger):
            await create_machine(api, types=1)
            while not await units.nodes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            ledger.write(lambda tx: take_memory(tx, str(uuid4()))).result()
            await create_pods(api, 1, GUEST, "team")
            await until(is_seen_again)
    assert told_ever == {None}


class DeafToQueues(MachineLedger):
    """It sells, and cannot be told who waits."""

    async def set_queues(self, queues: Mapping[str, GroupQueue | None]) -> None:
        raise LedgerBusy("away")


async def test_units_are_sold_even_if_queues_cannot_be_written(ledger: Ledger) -> None:
    api = MemoryApi()
    with capture_logs() as logs:
        async with operator(api, ledger, DeafToQueues(ledger)):
            await create_machine(api, types=1, available=2)
            await create_pods(api, 1, GUEST, "team")
            await until(lambda: let_go(api, GUEST) == 1)
            await until(lambda: any(each["event"] == "queues not written" for each in logs))
            meta = {"name": "later", "labels": role_labels("lab", "type-0", GUEST)}
            body = api.raw(Pod, "type-0-lab-0", "team")["spec"]
            spec = {**body, "schedulingGates": [{"name": UNIT_GATE}]}
            spec.pop("nodeSelector", None)
            await api.create(Pod, {"metadata": meta, "spec": spec}, namespace="team")
            await until(lambda: let_go(api, GUEST) == 2)
    assert told(ledger) == {}
