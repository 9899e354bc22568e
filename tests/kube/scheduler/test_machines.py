"""Units of machines beside classes: a pod that the ledger knows and that asks directly counts once.

Sleepers and guests ask for `nvidia.com/gpu` as other pods do, and the ledger holds the same GPUs
for them by their uids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.wire import Args, BindingArgs
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import Choice, Refusal, choice_of
from dovetail.kube.scheduler.plans import BindingPlan
from dovetail.kube.scheduler.pod_requirements import RequirementsCache
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.state import ClusterState
from dovetail.ledger.machines.units import UnitClaim
from dovetail.machines.names import UNIT_GATE
from dovetail.podfit.objects import Node, Pod, ResourceClass
from dovetail.service.machine_units import MachineLedger
from tests.kube.scheduler.world import (
    NAMESPACE,
    World,
    class_body,
    device,
    empty_state,
    node_body,
    pod_body,
    until,
)
from tests.service.machine_world import GROUP, guest, shape, sleeper, stock

GPU = "nvidia.com/gpu"
POOL = "nvidia.com.gpu"


def state_of(units: int, described: Sequence[str] = ()) -> ClusterState:
    """One node, whose GPUs are a pool unless they are described one by one."""
    state = ClusterState(devices_of, SchedulingQueue(), WorkQueue("releases"))
    state.on_class(None, msgspec.convert(class_body("gpu", GPU), ResourceClass))
    listed = [device(name, GPU) for name in described]
    state.on_node(None, msgspec.convert(node_body("n1", listed, plugged={GPU: units}), Node))
    return state


def pod_of(uid: str, node: str = "", *, direct: int, by_class: int = 0) -> Pod:
    asked: dict[str, Any] = {"gpu": by_class} if by_class else {}
    body = pod_body(uid, direct={GPU: direct}, **asked)
    body["metadata"]["uid"] = uid
    body["spec"]["nodeName"] = node
    return msgspec.convert(body, Pod)


def hear(state: ClusterState, held: Mapping[str, Mapping[str, int]]) -> None:
    """What the ledger says of the node: units by device and consumer."""
    state.on_ledger({"n1": {name: dict(units) for name, units in held.items()}})


def free(state: ClusterState) -> tuple[int, int]:
    """GPUs of the node that pods may have that ask directly, and by class."""
    return state.nodes.free("n1", GPU), int(state.inventory.free("gpu")[0])


def test_a_unit_counts_once_however_it_became_known() -> None:
    unit = pod_of("unit", "n1", direct=2)
    pod_first, ledger_first = state_of(5), state_of(5)
    pod_first.on_pod(None, unit)
    hear(pod_first, {POOL: {"unit": 2}})
    hear(ledger_first, {POOL: {"unit": 2}})
    assert free(ledger_first) == (3, 3), "what is held is held, before its pod is anywhere"
    ledger_first.on_pod(None, unit)
    assert free(pod_first) == free(ledger_first) == (3, 3)
    hear(pod_first, {})
    assert free(pod_first) == (3, 3), "the pod still has them"
    ledger_first.on_pod(unit, None)
    assert free(ledger_first) == (3, 3), "the ledger still has them"
    pod_first.on_pod(unit, None)
    hear(ledger_first, {})
    assert free(pod_first) == free(ledger_first) == (5, 5)


@pytest.mark.parametrize(("claimed", "direct", "left"), [(3, 2, 2), (2, 3, 2), (1, 1, 4)])
def test_the_larger_of_both_counts(claimed: int, direct: int, left: int) -> None:
    state = state_of(5)
    state.on_pod(None, pod_of("unit", "n1", direct=direct))
    hear(state, {POOL: {"unit": claimed}})
    assert free(state) == (left, left)


def test_gpus_that_are_described_one_by_one_count_once_too() -> None:
    state = state_of(3, ["g0", "g1", "g2"])
    hear(state, {"g0": {"unit": 1}, "g1": {"unit": 1}})
    assert free(state) == (1, 1)
    state.on_pod(None, pod_of("unit", "n1", direct=2))
    assert free(state) == (1, 1)
    hear(state, {"g2": {"other": 1}, "g0": {"unit": 1}, "g1": {"unit": 1}})
    assert free(state) == (0, 0)


def test_on_another_node_than_the_ledger_says_both_count() -> None:
    state = state_of(3)
    second = msgspec.convert(node_body("n2", plugged={GPU: 3}), Node)
    state.on_node(None, second)
    hear(state, {POOL: {"unit": 2}})
    state.on_pod(None, pod_of("unit", "n2", direct=2))
    assert (state.nodes.free("n1", GPU), state.nodes.free("n2", GPU)) == (1, 1)


def test_a_pod_that_asks_both_ways_holds_both() -> None:
    state = state_of(5)
    state.on_pod(None, pod_of("both", "n1", direct=2, by_class=1))
    hear(state, {POOL: {"both": 1}})
    assert free(state) == (2, 2)


def test_a_unit_has_room_where_the_ledger_holds_it() -> None:
    state = state_of(2)
    mine, other = pod_of("mine", direct=2), pod_of("other", direct=2)
    wants = RequirementsCache()
    hear(state, {POOL: {"mine": 2}})
    for pod in (mine, other):
        required = wants.of(pod)
        with state.own_claim_as_room(pod.metadata.uid, required.direct):
            found = choice_of(state, required, Strategy.FIRST_FIT)
        assert isinstance(found, Choice if pod is mine else Refusal)
        assert free(state) == (0, 0), "for others it is no room"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "unclaim", "bind", "end"]),
        st.sampled_from(["a", "b", "c"]),
        st.integers(1, 2),
        st.booleans(),
    ),
    max_size=20,
)


@settings(max_examples=150)
@given(STEPS, st.booleans())
def test_whatever_comes_when_the_larger_counts(
    steps: list[tuple[str, str, int, bool]], one_by_one: bool
) -> None:
    names = [f"g{number}" for number in range(12)] if one_by_one else []
    state = state_of(12, names)
    claimed: dict[str, Counter[str]] = {}
    bound: dict[str, tuple[Pod, int, int]] = {}
    for what, uid, units, asks_class in steps:
        if what == "claim":
            used = set().union(*claimed.values(), ())
            free_names = [name for name in names if name not in used]
            claimed[uid] = Counter(free_names[:units] if one_by_one else {POOL: units})
        elif what == "unclaim":
            claimed.pop(uid, None)
        elif what == "bind" and uid not in bound:
            pod = pod_of(uid, "n1", direct=units, by_class=int(asks_class))
            bound[uid] = (pod, units, asks_class)
            state.on_pod(None, pod)
        elif what == "end" and uid in bound:
            state.on_pod(bound.pop(uid)[0], None)
        told: dict[str, dict[str, int]] = {}
        for consumer, held in claimed.items():
            for name, amount in held.items():
                told.setdefault(name, {})[consumer] = amount
        hear(state, told)
    taken = 0
    for uid in claimed.keys() | bound.keys():
        by_ledger = sum(claimed.get(uid, Counter()).values())
        _, directly, adds_up = bound.get(uid, (None, 0, False))
        taken += by_ledger + directly if adds_up else max(by_ledger, directly)
    assert state.nodes.free("n1", GPU) == 12 - taken


# -- with a scheduler at work ----------------------------------------------------------------------


async def machines_of(world: World, gpus: int) -> MachineLedger:
    """A node with so many GPUs, of which machines with one are sold."""
    await world.resource_class("gpu", GPU)
    await world.node("n1", plugged={GPU: gpus})
    machines = MachineLedger(world.ledger)
    await machines.enter_node("n1", 8, 32 * 1024, devices_of(world.api.everything(Node)["n1"]))
    await machines.set_stock(GROUP, stock(8, shape(gpus=1)))
    return machines


async def gated_guest(world: World, scheduler: str = "dovetail") -> UnitClaim:
    body = pod_body("guest", scheduler, direct={GPU: 1})
    body["spec"]["schedulingGates"] = [{"name": UNIT_GATE}]
    await world.api.create(Pod, body, namespace=NAMESPACE)
    return guest(shape(gpus=1), consumer=world.see("guest").metadata.uid)


async def open_gate(world: World) -> None:
    body: Any = {"spec": {"schedulingGates": []}}
    await world.api.merge(Pod, "guest", body, namespace=NAMESPACE)


async def test_stock_is_held_and_left_alone(world: World) -> None:
    machines = await machines_of(world, gpus=2)
    async with world.scheduling() as scheduler:
        held = sleeper(shape(gpus=1))
        await machines.move([held])
        await until(lambda: scheduler.state.nodes.free("n1", GPU) == 1)
        await world.pod("classy", gpu=2)
        await until(lambda: len(world.notes("classy")) == 1)
        assert f"2 asked, 1 of 2 free, held by {held.consumer}" in world.notes("classy")[0]
        await world.pod("plain", direct={GPU: 2})
        await until(lambda: len(world.notes("plain")) == 1)
        assert f"1 Insufficient {GPU}" in world.notes("plain")[0]
        await scheduler.reconciler.reconcile()
        assert list(await machines.units()) == [held.consumer]
        await machines.release([held.consumer])
        await until(lambda: world.is_bound("classy") or world.is_bound("plain"))


async def test_a_guest_of_this_scheduler_gets_what_it_was_sold(world: World) -> None:
    machines = await machines_of(world, gpus=1)
    async with world.scheduling() as scheduler:
        unit = await gated_guest(world)
        await machines.move([unit])
        await until(lambda: scheduler.state.nodes.free("n1", GPU) == 0)
        await open_gate(world)
        await until(lambda: world.is_bound("guest"))
        await scheduler.reconciler.reconcile()
        assert list(await machines.units()) == [unit.consumer]
        assert scheduler.state.nodes.free("n1", GPU) == 0
        await world.api.delete(Pod, "guest", NAMESPACE, grace=0)
        await machines.release([unit.consumer])
        await until(lambda: scheduler.state.nodes.free("n1", GPU) == 1)


async def test_a_guest_of_kube_scheduler_gets_it_through_the_extender(world: World) -> None:
    machines = await machines_of(world, gpus=1)
    replica = world.replica()
    async with world.scheduling(replica) as scheduler:
        extender = Extender(replica.extender_parts())
        unit = await gated_guest(world, "default-scheduler")
        await machines.move([unit])
        await until(lambda: scheduler.state.nodes.free("n1", GPU) == 0)
        await open_gate(world)
        other = await world.pod("other", scheduler="default-scheduler", direct={GPU: 1})
        for pod, left in ((world.see("guest"), ["n1"]), (other, [])):
            assert extender.filter(Args(pod=pod, node_names=["n1"])).node_names == left
        about = {"pod_namespace": NAMESPACE, "node": "n1"}
        refused = await extender.bind(
            BindingArgs(pod_name="other", pod_uid=other.metadata.uid, **about)
        )
        assert refused.error == f"Insufficient {GPU} on n1"
        bound = await extender.bind(BindingArgs(pod_name="guest", pod_uid=unit.consumer, **about))
        assert bound.error == ""
        assert list(await machines.units()) == [unit.consumer]


@pytest.mark.parametrize(
    ("is_gone", "outcome"), [(True, BindingOutcome.GONE), (False, BindingOutcome.OTHERWISE)]
)
async def test_a_binding_that_comes_to_nothing_gives_no_unit_back(
    world: World, is_gone: bool, outcome: BindingOutcome
) -> None:
    machines = await machines_of(world, gpus=1)
    unit = await gated_guest(world)
    await machines.move([unit])
    await open_gate(world)
    plan = BindingPlan(world.see("guest"), "n1")
    if is_gone:
        await world.api.delete(Pod, "guest", NAMESPACE, grace=0)
    else:
        elsewhere = {
            "metadata": {"name": "guest", "namespace": NAMESPACE},
            "target": {"name": "n2"},
        }
        await world.api.create(Pod, elsewhere, sub="binding")
    binder = Binder(world.api, PodClaims(world.api, world.devices, empty_state()))
    assert await binder.carry_out(plan) is outcome
    assert list(await machines.units()) == [unit.consumer]
