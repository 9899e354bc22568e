"""Plugins over sockets: what is answered is kept, and what cannot be kept is not promised."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.topology import Hugepages, Nic, synthetic
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    GET_POD_TOPOLOGY_HINTS,
    GET_RESOURCE_PLUGIN_OPTIONS,
    GET_RESOURCES_ALLOCATION,
    GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES,
    GET_TOPOLOGY_AWARE_RESOURCES,
    GET_TOPOLOGY_HINTS,
    ContainerType,
    Empty,
    GetResourcesAllocationRequest,
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareResourcesRequest,
    ListOfTopologyHints,
    PodResourceRequest,
    ResourceRequest,
    TopologyHint,
)
from tests.node.plugins.rig import (
    GB,
    Caller,
    directory,
    plugin,
    request,
    serving,
    spec_machine,
    with_hint,
)

ROLES = """
[reserved]
cpus = "0-1,40-41"
memory = { 0 = "500Mi", 1 = "500Mi" }

[pools.online]
size = 10

[roles.own]
cpu = { exclusive = true }
memory = { bind = true }
nic = {}

[roles.web]
cpu = { pool = "online" }

[nics.eth0]
ipv4 = "10.0.0.1"
"""
NICS = (Nic(name="eth0", numa=0, speed=1000), Nic(name="eth1", numa=1, speed=1000))
AMOUNTS = {"cpu": 4, "memory": 2 * GB, "nic": 0}
KINDS = ("cpu", "memory", "nic")


@asynccontextmanager
async def over_socket(kind: str) -> AsyncIterator[tuple[Caller, Path]]:
    with directory() as made:
        served = plugin(kind, spec_machine(NICS), ROLES, made)
        async with serving(served, made / f"{kind}.sock") as caller:
            yield caller, made


def wanted(kind: str, uid: str = "pod", role: str = "own", **more: Any) -> ResourceRequest:
    resource = "NIC" if kind == "nic" else kind
    return request(uid, resource, AMOUNTS[kind], role, **more)


async def refused(caller: Caller, method: Any, question: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.call(method, question)
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
async def test_a_restart_changes_nothing(kind: str) -> None:
    async with over_socket(kind) as (caller, made):
        await caller.admit(wanted(kind, "a"))
        await caller.admit(wanted(kind, "b"))
        await caller.admit(wanted(kind, "c", "web"))
        question = GetResourcesAllocationRequest()
        before = await caller.call(GET_RESOURCES_ALLOCATION, question)
        again = plugin(kind, spec_machine(NICS), ROLES, made)
        assert again.state == caller.plugin.state
        async with serving(again, made / "again.sock") as other:
            assert await other.call(GET_RESOURCES_ALLOCATION, question) == before
            assert await other.allocate(wanted(kind, "b")) == await caller.allocate(
                wanted(kind, "b")
            )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_state_that_cannot_be_written_fails_the_call_and_changes_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere such failures are only logged, and two containers get the same after a restart."""

    def full(*_: object) -> None:
        raise StateNotSaved("the state could not be written: No space left on device")

    async with over_socket(kind) as (caller, made):
        await caller.admit(wanted(kind, "a"))
        kept = caller.plugin.state
        monkeypatch.setattr(PluginStore, "save", full)
        error = await refused(caller, ALLOCATE, wanted(kind, "b"))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "No space left" in (error.details() or "")
        with pytest.raises(grpc.aio.AioRpcError):
            await caller.remove("a")
        assert caller.plugin.state == kept
        monkeypatch.undo()
        await caller.admit(wanted(kind, "b"))
        assert plugin(kind, spec_machine(NICS), ROLES, made).state == caller.plugin.state


@pytest.mark.parametrize("kind", KINDS)
async def test_a_pod_that_goes_leaves_nothing(kind: str) -> None:
    async with over_socket(kind) as (caller, _made):
        empty = caller.plugin.state
        await caller.admit(wanted(kind, "a", container="one"))
        await caller.admit(wanted(kind, "a", container="two"))
        await caller.remove("a")
        await caller.remove("never heard of")
        assert caller.plugin.state == empty


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_held_is_told_with_its_hints(kind: str) -> None:
    """Without them a restarted agent would have to ask again for every container."""

    async with over_socket(kind) as (caller, _made):
        given = await caller.allocate(with_hint(wanted(kind), (0,)))
        assert given.resource_hints == ListOfTopologyHints(
            hints=(TopologyHint(nodes=(0,), preferred=True),)
        )
        answer = await caller.call(GET_RESOURCES_ALLOCATION, GetResourcesAllocationRequest())
        found = answer.pod_resources["pod"].container_resources["container0"].resource_allocation
        assert found == {caller.plugin.resource: given}
        assert await caller.hints(wanted(kind)) == [((0,), True)]


@pytest.mark.parametrize("kind", KINDS)
async def test_no_preference_is_no_entry(kind: str) -> None:
    async with over_socket(kind) as (caller, _made):
        answer = await caller.call(GET_TOPOLOGY_HINTS, wanted(kind, role="web"))
        assert answer.resource_hints == {}
        assert (await caller.allocate(wanted(kind, role="web"))).resource_hints is None


@pytest.mark.parametrize("kind", KINDS)
async def test_options(kind: str) -> None:
    async with over_socket(kind) as (caller, _made):
        options = await caller.call(GET_RESOURCE_PLUGIN_OPTIONS, Empty())
        assert (options.with_topology_alignment, options.need_reconcile) == (True, True)


async def test_memory_and_huge_pages_that_are_asked_for_together() -> None:
    """The plugin tells that it counts both, so an agent can send one request for them."""

    pages = {2**21: Hugepages(total=512, free=512), 2**30: Hugepages(total=1, free=1)}
    machine = synthetic(memory=8 * 2**30, hugepages=pages)
    with directory() as made:
        served = plugin("memory", machine, "[roles.own]\nmemory = { bind = true }\n", made)
        async with serving(served, made / "memory.sock") as caller:
            options = await caller.call(GET_RESOURCE_PLUGIN_OPTIONS, Empty())
            assert options.extra_resources == ("hugepages-1Gi", "hugepages-2Mi")
            amounts = {"memory": 2**30, "hugepages-2Mi": 2**30}
            for pod, node in (("a", "0"), ("b", "1")):
                given = await caller.admit(request(pod, "memory", amounts, "own"))
                assert given.allocation_result == node
            error = await refused(caller, ALLOCATE, request("c", "memory", amounts, "own"))
            assert "node 0: 0 of hugepages-2Mi free, 5Gi of memory free" in str(error)
            answer = await caller.call(
                GET_TOPOLOGY_AWARE_RESOURCES,
                GetTopologyAwareResourcesRequest(pod_uid="b", container_name="container0"),
            )
            found = answer.container_topology_aware_resources.allocated_resources
            assert {name: each.aggregated_quantity for name, each in found.items()} == amounts


@pytest.mark.parametrize("kind", ["cpu", "memory"])
async def test_an_amount_beyond_all_bounds_is_too_much(kind: str) -> None:
    async with over_socket(kind) as (caller, _made):
        error = await refused(caller, ALLOCATE, request("pod", kind, 1e308, "own"))
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("kind", ["cpu", "memory"])
@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0])
async def test_amounts_that_are_none(kind: str, amount: float) -> None:
    async with over_socket(kind) as (caller, _made):
        before = caller.plugin.state
        error = await refused(caller, ALLOCATE, request("pod", kind, amount, "own"))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert f"of {kind} is no amount" in (error.details() or "")
        assert caller.plugin.state == before


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (request("", "cpu", 1), "needs pod_uid and container_name"),
        (request("pod", "cpu", 1, container=""), "needs pod_uid and container_name"),
        (with_hint(request("pod", "cpu", 1), (7,)), "a hint names NUMA node 7"),
    ],
)
async def test_requests_that_make_no_sense(question: ResourceRequest, words: str) -> None:
    async with over_socket("cpu") as (caller, _made):
        error = await refused(caller, ALLOCATE, question)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert words in (error.details() or "")


async def test_too_much_is_refused_with_words_already_when_asked_for_hints() -> None:
    async with over_socket("cpu") as (caller, _made):
        for method in (GET_TOPOLOGY_HINTS, ALLOCATE):
            error = await refused(caller, method, request("pod", "cpu", 70, "own"))
            assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert error.details() == (
                "default/name-of-pod wants 70 CPUs of its own (role own); "
                "66 are free in pool shared: node 0: 32 free; node 1: 34 free"
            )


async def test_limits_are_no_requests() -> None:
    async with over_socket("cpu") as (caller, _made):
        given = await caller.allocate(request("pod", "cpu", 2, "own", limits={"cpu": 8.0}))
        assert given.allocated_quantity == 2


@pytest.mark.parametrize("names", [{}, {"example.com/cpus": "cpu"}])
async def test_what_the_pod_calls_otherwise(names: dict[str, str]) -> None:
    """Told by our agent; others than it name the one resource that is asked for."""
    async with over_socket("cpu") as (caller, _made):
        question = request("pod", "cpu", {"example.com/cpus": 2}, "own", resource_names=names)
        assert (await caller.allocate(question)).allocated_quantity == 2


async def test_a_pod_as_a_whole_needs_room_for_whole_cpus() -> None:
    async with over_socket("cpu") as (caller, _made):
        question = PodResourceRequest(
            pod_uid="pod",
            pod_namespace="default",
            pod_name="a",
            pod_role="own",
            resource_name="cpu",
            resource_requests={"cpu": 34.5},
        )
        answer = await caller.call(GET_POD_TOPOLOGY_HINTS, question)
        assert answer.pod_uid == "pod"
        assert [each.nodes for each in answer.resource_hints["cpu"].hints] == [(1,), (0, 1)]


async def test_init_containers_and_sidecars() -> None:
    async with over_socket("cpu") as (caller, _made):

        async def given(container: str, kind: ContainerType) -> str:
            question = request("pod", "cpu", 4, "own", container=container, kind=kind)
            return (await caller.allocate(with_hint(question, (1,)))).allocation_result

        assert await given("init", ContainerType.INIT) == "46-49"
        assert await given("main", ContainerType.MAIN) == "46-49"
        assert await given("sidecar", ContainerType.SIDECAR) == "50-53"


async def test_what_a_container_has_by_numa_node() -> None:
    async with over_socket("cpu") as (caller, _made):
        await caller.allocate(wanted("cpu", "shares", "web"))
        question = GetTopologyAwareResourcesRequest(pod_uid="shares", container_name="container0")
        answer = await caller.call(GET_TOPOLOGY_AWARE_RESOURCES, question)
        assert answer.pod_name == "name-of-shares"
        found = answer.container_topology_aware_resources.allocated_resources["cpu"]
        by_node = [(each.node, each.resource_value) for each in found.topology_aware_quantity_list]
        assert (found.aggregated_quantity, by_node) == (10, [(0, 6), (1, 4)])
        nothing = await caller.call(
            GET_TOPOLOGY_AWARE_RESOURCES, GetTopologyAwareResourcesRequest(pod_uid="other")
        )
        assert nothing.container_topology_aware_resources.allocated_resources == {}


@pytest.mark.parametrize(
    ("kind", "allocatable", "capacity"),
    [
        ("cpu", {0: 38, 1: 38}, {0: 40, 1: 40}),
        (
            "memory",
            {0: 237_182_648_320, 1: 237_282_263_040},
            {0: 237_706_936_320, 1: 237_806_551_040},
        ),
        ("nic", {0: 1000, 1: 1000}, {0: 1000, 1: 1000}),
    ],
)
async def test_what_there_is_by_numa_node(
    kind: str, allocatable: dict[int, float], capacity: dict[int, float]
) -> None:
    async with over_socket(kind) as (caller, _made):
        answer = await caller.call(
            GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES, GetTopologyAwareAllocatableResourcesRequest()
        )
        found = answer.allocatable_resources[caller.plugin.resource]
        lists = (
            found.topology_aware_allocatable_quantity_list,
            found.topology_aware_capacity_quantity_list,
        )
        shown = [{each.node: each.resource_value for each in listed} for listed in lists]
        assert shown == [allocatable, capacity]
        assert found.aggregated_allocatable_quantity == sum(allocatable.values())
        assert found.aggregated_capacity_quantity == sum(capacity.values())
        assert not found.is_node_resource
