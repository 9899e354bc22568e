"""Units of a device plugin go to pods that ask by class and to pods that ask directly, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.decide import Choice, Refusal, choice_of
from dovetail.kube.scheduler.plans import BindingPlan
from dovetail.kube.scheduler.pod_requirements import RequirementsCache
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Node, Pod, ResourceClass
from tests.kube.scheduler.world import (
    NAMESPACE,
    World,
    class_body,
    device,
    node_body,
    pod_body,
    until,
)

GPU = "nvidia.com/gpu"


async def bind(world: World, name: str, node: str) -> None:
    """As somebody else does."""
    body = {"metadata": {"name": name, "namespace": NAMESPACE}, "target": {"name": node}}
    await world.api.create(Pod, body, sub="binding")


async def test_pods_that_ask_directly_hold_what_pods_with_classes_cannot_have(world: World) -> None:
    await world.resource_class("gpu", GPU)
    await world.node("n1", plugged={GPU: 3})
    await world.pod("plain", scheduler="default-scheduler", direct={GPU: 2})
    await bind(world, "plain", "n1")
    async with world.scheduling():
        await world.pod("two", gpu=2)
        await until(lambda: len(world.notes("two")) == 1)
        assert "2 asked, 1 of 3 free, held by pod default/plain" in world.notes("two")[0]
        await world.pod("one", gpu=1)
        await until(lambda: world.is_bound("one"))
        await world.api.delete(Pod, "plain", NAMESPACE, grace=0)
        await until(lambda: world.is_bound("two"))


async def test_pods_with_classes_hold_what_pods_that_ask_directly_cannot_have(world: World) -> None:
    await world.resource_class("gpu", GPU)
    await world.node("n1", plugged={GPU: 3})
    async with world.scheduling():
        await world.pod("classy", gpu=2)
        await until(lambda: world.is_bound("classy"))
        await world.pod("two", direct={GPU: 2})
        await until(lambda: len(world.notes("two")) == 1)
        assert f"1 Insufficient {GPU}" in world.notes("two")[0]
        await world.pod("one", direct={GPU: 1})
        await until(lambda: world.is_bound("one"))
        await world.api.delete(Pod, "classy", NAMESPACE, grace=0)
        await until(lambda: world.is_bound("two"))


async def test_what_clients_of_the_ledger_hold_of_a_pool_is_no_room_either(world: World) -> None:
    await world.resource_class("gpu", GPU)
    await world.node("n1", plugged={GPU: 1})
    async with world.scheduling() as scheduler:
        await until(lambda: "n1" in scheduler.state.devices)
        foreign = "11111111-1111-1111-1111-111111111111"
        (pool,) = scheduler.state.devices["n1"]
        await world.devices.publish("n1", [pool])
        await world.devices.claim(foreign, "project", "user", "n1", [DeviceHolding(pool.name, 1)])
        await until(lambda: scheduler.state.nodes.free("n1", GPU) == 0)
        await world.pod("p", direct={GPU: 1})
        await until(lambda: len(world.notes("p")) == 1)
        await world.devices.release(foreign)
        await until(lambda: world.is_bound("p"))


# -- whatever comes and goes -----------------------------------------------------------------------


def state_of(units: dict[str, int]) -> ClusterState:
    state = ClusterState(devices_of, SchedulingQueue(), WorkQueue("releases"))
    state.on_class(None, msgspec.convert(class_body("gpu", GPU), ResourceClass))
    for name, count in units.items():
        state.on_node(None, msgspec.convert(node_body(name, plugged={GPU: count}), Node))
    return state


def pod_of(uid: str, direct: int, by_class: int) -> Pod:
    asked: dict[str, Any] = {"direct": {GPU: direct}} if direct else {}
    if by_class:
        asked["gpu"] = by_class
    body = pod_body(uid, **asked)
    body["metadata"]["uid"] = uid
    return msgspec.convert(body, Pod)


def test_a_pod_that_asks_both_ways_needs_units_for_both() -> None:
    state = state_of({"n1": 1})
    required = RequirementsCache().of(pod_of("p", 1, 1))
    refused = choice_of(state, required, Strategy.FIRST_FIT)
    assert isinstance(refused, Refusal)
    assert "held by the pod itself" in refused.why
    state.on_node(None, msgspec.convert(node_body("n2", plugged={GPU: 2}), Node))
    found = choice_of(state, required, Strategy.FIRST_FIT)
    assert isinstance(found, Choice)
    assert found.node == "n2"


def test_devices_that_are_described_one_by_one_are_no_room_when_they_are_held_by_class() -> None:
    state = state_of({})
    listed = [device("g0", GPU), device("g1", GPU)]
    state.on_node(None, msgspec.convert(node_body("n1", listed, plugged={GPU: 2}), Node))
    wants = RequirementsCache()
    found = choice_of(state, wants.of(pod_of("a", 0, 1)), Strategy.FIRST_FIT)
    assert isinstance(found, Choice)
    state.assume(BindingPlan(pod_of("a", 0, 1), found.node, found.holdings))
    assert isinstance(choice_of(state, wants.of(pod_of("b", 2, 0)), Strategy.FIRST_FIT), Refusal)
    assert isinstance(choice_of(state, wants.of(pod_of("b", 1, 0)), Strategy.FIRST_FIT), Choice)


def test_a_node_that_comes_back_has_the_room_that_its_pods_leave() -> None:
    state = state_of({"n1": 3})
    required = RequirementsCache().of(pod_of("a", 0, 2))
    found = choice_of(state, required, Strategy.FIRST_FIT)
    assert isinstance(found, Choice)
    state.assume(BindingPlan(pod_of("a", 0, 2), found.node, found.holdings))
    node = msgspec.convert(node_body("n1", plugged={GPU: 3}), Node)
    state.on_node(node, None)
    state.on_node(None, msgspec.convert(node_body("other", plugged={GPU: 5}), Node))
    state.on_node(None, node)
    assert (state.nodes.free("n1", GPU), state.nodes.free("other", GPU)) == (1, 5)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 9), st.just(0)),
    ),
    max_size=16,
)


@settings(max_examples=60)
@given(EVENTS, st.sampled_from(list(Strategy)))
def test_pods_of_both_sorts_never_exceed_a_node_and_are_refused_only_if_they_would(
    events: list[tuple[str, int, int]], strategy: Strategy
) -> None:
    units = {"n1": 2, "n2": 3}
    state, wants = state_of(units), RequirementsCache()
    placed: list[tuple[Pod, str, int]] = []
    for number, (what, first, second) in enumerate(events):
        used: Counter[str] = Counter()
        for _, node, count in placed:
            used[node] += count
        assert all(used[node] <= units[node] for node in units)
        if what == "end":
            if first < len(placed):
                pod, _, _ = placed.pop(first)
                state.on_pod(pod, None)
            continue
        pod = pod_of(str(number), first, second)
        found = choice_of(state, wants.of(pod), strategy)
        if isinstance(found, Refusal):
            assert all(units[node] - used[node] < first + second for node in units)
            continue
        state.on_pod(None, pod)
        state.assume(BindingPlan(pod, found.node, found.holdings))
        placed.append((pod, found.node, first + second))
