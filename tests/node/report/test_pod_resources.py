"""The pod resources API: Kubernetes' own fields, and the plugins' words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from dovetail.node.class_devices.plugins import NoDevicePlugins
from dovetail.node.common.ports import PluginFailure
from dovetail.node.registry.poll import ANSWER_WAIT_SECONDS
from dovetail.node.report.capacity import NodeCapacity
from dovetail.node.report.pod_resources import PodResourcesApi
from dovetail.node.wire import pod_resources as wire
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ContainerTopologyAwareResources,
    ContainerType,
    GetTopologyAwareAllocatableResourcesResponse,
    GetTopologyAwareResourcesRequest,
    GetTopologyAwareResourcesResponse,
    ResourceAllocation,
    TopologyAwareQuantity,
    TopologyAwareResource,
    TopologyHint,
)
from dovetail.wire.rpc import Refused
from tests.support.node.fakes import Node, Pieces, container, pod


class Cpu(Pieces):
    def GetTopologyAwareResources(self, question: GetTopologyAwareResourcesRequest) -> Any:
        own = self.held[question.pod_uid][question.container_name]
        told = TopologyAwareResource(
            is_scalar_resource=True,
            aggregated_quantity=float(len(own)),
            topology_aware_quantity_list=(
                TopologyAwareQuantity(resource_value=float(len(own)), node=0),
            ),
        )
        return GetTopologyAwareResourcesResponse(
            container_topology_aware_resources=ContainerTopologyAwareResources(
                container_name=question.container_name, allocated_resources={"cpu": told}
            )
        )


class Memory(Pieces):
    def __init__(self) -> None:
        super().__init__("memory", {0: [0], 1: [1]}, property_name="CpusetMems", aligned=False)

    def wanted(self, question: Any) -> int:
        return 1

    def told(self, own: Any, hint: TopologyHint) -> ResourceAllocation:
        found = super().told(own, hint)
        info = found.resource_allocation["memory"]
        with_bytes = msgspec.structs.replace(info, topology_assignments=dict.fromkeys(own, 2**30))
        return ResourceAllocation(resource_allocation={"memory": with_bytes})

    def GetTopologyAwareAllocatableResources(self, _: Any) -> Any:
        told = AllocatableTopologyAwareResource(
            is_scalar_resource=True,
            aggregated_allocatable_quantity=3.0,
            topology_aware_allocatable_quantity_list=(
                TopologyAwareQuantity(resource_value=2.0, node=0),
                TopologyAwareQuantity(resource_value=1.0, node=1),
            ),
        )
        return GetTopologyAwareAllocatableResourcesResponse(allocatable_resources={"memory": told})


class World:
    def __init__(self, directory: Path, *pods: Any, **more: Any) -> None:
        self.cpu, self.memory = Cpu(aligned=False), Memory()
        self.pods = pods
        wait_seconds = more.pop("wait_seconds", ANSWER_WAIT_SECONDS)
        self.node = Node(directory, [self.cpu, self.memory], pods, **more)
        self.capacity = NodeCapacity(self.node.store, self.node.plugins)
        self.now = 0.0
        self.api = PodResourcesApi(
            self.node.store,
            self.node.plugins,
            self.capacity,
            self.node.source,
            devices=NoDevicePlugins(),
            clock=lambda: self.now,
            wait_seconds=wait_seconds,
        )

    async def start(self) -> None:
        for each in self.pods:
            await self.node.start(each)

    async def list(self) -> dict[str, wire.PodResources]:
        answer = await self.api.list(wire.ListPodResourcesRequest())
        return {each.name: each for each in answer.pod_resources}

    def containers(self, found: wire.PodResources) -> dict[str, wire.ContainerResources]:
        return {each.name: each for each in found.containers}


async def test_a_pod_is_listed_with_all_it_holds(tmp_path: Path) -> None:
    role = {"kubernetes.io/pod-role": "db", "kubernetes.io/resource-type": "numa"}
    own = pod("a", container(cpu=2, memory=5), annotations=role, labels={"app": "x"})
    world = World(tmp_path, own)

    await world.start()
    (found,) = (await world.list()).values()
    assert (found.namespace, found.name) == ("default", "pod-a")
    assert (found.pod_role, found.pod_type) == ("db", "numa")
    assert (found.labels, found.annotations) == ({"app": "x"}, role)
    (main,) = found.containers
    assert (main.name, main.cpu_ids) == ("main", (0, 1))
    (block,) = main.memory
    assert block.topology is not None
    nodes = [each.ID for each in block.topology.nodes]
    assert (block.memory_type, block.size, nodes) == ("memory", 2**30, [0])
    assert [(each.resource_name, each.aggregated_quantity) for each in main.resources] == [
        ("cpu", 2.0),
        ("memory", 1.0),
    ]
    assert main.resources[0].topology_aware_quantity_list[0].resource_value == 2.0


async def test_shared_cpus_are_not_listed_as_a_containers_own(tmp_path: Path) -> None:
    world = World(tmp_path, pod("a", container(cpu=2)), pod("b", container(cpu=2)))

    await world.start()
    found = await world.list()
    assert found["pod-a"].containers[0].cpu_ids == (0, 1)
    # Now both have the same.
    pools = world.node.store.pods["a"].containers["main"].allocations
    world.node.store.refresh("b", "main", pools)
    found = await world.list()
    assert [each.containers[0].cpu_ids for each in found.values()] == [(), ()]


async def test_a_pool_with_one_container_in_it_is_not_its_own(tmp_path: Path) -> None:
    world = World(tmp_path, pod("a", container(cpu=1.5)))

    await world.start()
    assert (await world.list())["pod-a"].containers[0].cpu_ids == ()


async def test_init_containers_are_listed_only_if_they_stay(tmp_path: Path) -> None:
    own = pod(
        "a",
        container("setup", 0, cpu=1, type=ContainerType.INIT),
        container("mesh", 1, cpu=1, type=ContainerType.INIT, restartable=True),
        container("main", 0, cpu=1),
        container("aide", 1, cpu=1, type=ContainerType.SIDECAR),
    )
    world = World(tmp_path, own)

    await world.start()
    found = (await world.list())["pod-a"]
    assert [each.name for each in found.containers] == ["mesh", "main", "aide"]


@pytest.mark.parametrize("up", [False, True])
async def test_a_plugin_that_is_away_or_fails_does_not_make_the_list_shorter(
    tmp_path: Path, up: bool
) -> None:
    world = World(tmp_path, pod("a", container(cpu=2)))

    await world.start()
    world.cpu.up, world.cpu.failure = up, PluginFailure.TIMEOUT
    (main,) = (await world.list())["pod-a"].containers
    assert main.cpu_ids == (0, 1)
    assert [(each.resource_name, each.aggregated_quantity) for each in main.resources] == [
        ("cpu", 2.0)
    ]


async def test_a_plugin_that_hangs_does_not_make_the_list_late(tmp_path: Path) -> None:
    world = World(tmp_path, pod("a", container(cpu=2)), wait_seconds=0.01)

    await world.start()
    world.cpu.delay = 600
    async with asyncio.timeout(30):
        (main,) = (await world.list())["pod-a"].containers
    assert [each.resource_name for each in main.resources] == ["cpu"]


async def test_one_pod_is_found_by_name_or_not_at_all(tmp_path: Path) -> None:
    world = World(tmp_path, pod("a", container(cpu=2)))

    await world.start()
    found = await world.api.get(
        wire.GetPodResourcesRequest(pod_name="pod-a", pod_namespace="default")
    )
    assert found.pod_resources is not None
    assert found.pod_resources.containers[0].cpu_ids == (0, 1)
    with pytest.raises(Refused, match="no pod pod-a of namespace other") as refused:
        await world.api.get(wire.GetPodResourcesRequest(pod_name="pod-a", pod_namespace="other"))
    assert refused.value.code is grpc.StatusCode.NOT_FOUND


async def test_where_nobody_knows_the_pods_their_containers_are_listed_all_the_same(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, pod("a", container(cpu=2)))

    await world.start()
    assert world.node.source is not None
    world.node.source.known = False
    (main,) = (await world.list())["pod-a"].containers
    # Nobody can tell whether it asked for just so many.
    assert (main.name, main.cpu_ids) == ("main", ())


async def test_what_is_allocatable_is_what_plugins_told(tmp_path: Path) -> None:
    world = World(tmp_path)

    await world.capacity.look()
    found = await world.api.get_allocatable_resources(wire.AllocatableResourcesRequest())
    sizes = [
        (each.memory_type, each.size, each.topology and each.topology.nodes[0].ID)
        for each in found.memory
    ]
    assert sizes == [("memory", 2, 0), ("memory", 1, 1)]
    (told,) = found.resources
    assert (told.resource_name, told.aggregated_allocatable_quantity) == ("memory", 3.0)


async def test_too_many_questions_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)

    for _ in range(10):
        await world.list()
    with pytest.raises(Refused, match="100 questions a second") as refused:
        await world.list()
    assert refused.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    world.now += 0.01
    await world.list()
