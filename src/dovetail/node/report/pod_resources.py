"""The pod resources API: which pod holds what, for monitoring and for schedulers.

The fields of Kubernetes are filled from what the manager remembers, so they are there while a
plugin is away. The topology-aware ones are the plugins' own words; where a plugin gives none, they
are made of its allocations.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping

import grpc

from dovetail.aio.single_flight import NextRun
from dovetail.aio.token_bucket import TokenBucket
from dovetail.node.class_devices.names import is_class_resource
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.device_plugins import DevicePlugins
from dovetail.node.common.pods import ContainerSpec, Pod
from dovetail.node.common.ports import PluginError, Plugins, PodSource
from dovetail.node.registry.poll import ANSWER_WAIT_SECONDS
from dovetail.node.report.capacity import NodeCapacity
from dovetail.node.report.exclusivity import Owners, cpu_owners, exclusive_cpus
from dovetail.node.report.listed_devices import allocatable_devices, held_devices
from dovetail.node.state.pod_state import Allocations, ContainerHolding, PodState
from dovetail.node.state.store import StateStore
from dovetail.node.wire import pod_resources as wire
from dovetail.node.wire.resource_plugin import (
    GET_TOPOLOGY_AWARE_RESOURCES,
    ContainerType,
    GetTopologyAwareResourcesRequest,
    NUMANode,
    ResourceAllocationInfo,
    TopologyAwareQuantity,
    TopologyAwareResource,
    TopologyInfo,
)
from dovetail.wire.rpc import Refused, Served

CALLS_PER_SECOND, BURST_CALLS = 100.0, 10.0
"""Questions a second, and how many at once. The kubelet has the same."""

MEMORY = ("memory", "hugepages-")


class PodResourcesApi:
    def __init__(
        self,
        store: StateStore,
        plugins: Plugins,
        capacity: NodeCapacity,
        source: PodSource | None,
        *,
        devices: DevicePlugins,
        clock: Callable[[], float] = time.monotonic,
        wait_seconds: float = ANSWER_WAIT_SECONDS,
    ) -> None:
        """`wait_seconds`: for a plugin's own words; without them they are made of allocations."""
        self._store, self._plugins, self._capacity = store, plugins, capacity
        self._devices, self._wait_seconds = devices, wait_seconds
        self._source = source
        self._bucket = TokenBucket(CALLS_PER_SECOND, BURST_CALLS, clock)
        self._all = NextRun(self._listed)

    def served(self) -> Iterable[Served]:
        return (
            Served(wire.LIST, self.list),
            Served(wire.GET, self.get),
            Served(wire.GET_ALLOCATABLE_RESOURCES, self.get_allocatable_resources),
        )

    async def list(self, _: wire.ListPodResourcesRequest) -> wire.ListPodResourcesResponse:
        self._limit()
        # Those who ask at the same time share the questions to plugins.
        return wire.ListPodResourcesResponse(pod_resources=await self._all.join())

    async def get(self, question: wire.GetPodResourcesRequest) -> wire.GetPodResourcesResponse:
        self._limit()
        wanted = question.pod_namespace, question.pod_name
        pods = [pod for pod in self._store.pods.values() if (pod.namespace, pod.name) == wanted]
        # A pod that is being replaced has a namesake for a while: the newer one is meant.
        pod = max((each for each in pods if each.admitted), key=lambda each: each.at, default=None)
        if pod is None:
            words = (
                f"no pod {question.pod_name} of namespace {question.pod_namespace} holds anything"
            )
            raise Refused(grpc.StatusCode.NOT_FOUND, words)
        known, held = await self._specifications(), cpu_owners(self._store.pods.values())
        found = await self._pod(pod, known.get(pod.uid), held)
        return wire.GetPodResourcesResponse(pod_resources=found)

    async def get_allocatable_resources(
        self, _: wire.AllocatableResourcesRequest
    ) -> wire.AllocatableResourcesResponse:
        self._limit()
        told = {
            name: each
            for plugin in sorted(self._capacity.resources_by_plugin)
            for name, each in self._capacity.resources_by_plugin[plugin].items()
        }
        return wire.AllocatableResourcesResponse(
            devices=tuple(allocatable_devices(self._devices)),
            memory=tuple(
                memory(name, node, size)
                for name in sorted(told)
                if name.startswith(MEMORY)
                for node, size in by_node(
                    told[name].topology_aware_allocatable_quantity_list
                ).items()
            ),
            resources=tuple(
                wire.AllocatableTopologyAwareResource(
                    resource_name=name,
                    **{field: getattr(told[name], field) for field in told[name].__struct_fields__},
                )
                for name in sorted(told)
            ),
        )

    def _limit(self) -> None:
        if not self._bucket.take():
            words = f"more than {CALLS_PER_SECOND:.0f} questions a second: ask later"
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, words)

    async def _listed(self) -> tuple[wire.PodResources, ...]:
        known, held = await self._specifications(), cpu_owners(self._store.pods.values())
        pods = sorted(self._store.pods.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))
        chosen = [each for each in pods if each.admitted]
        return tuple(
            await asyncio.gather(*(self._pod(each, known.get(each.uid), held) for each in chosen))
        )

    async def _specifications(self) -> Mapping[str, Pod]:
        active = None if self._source is None else await self._source.active()
        return {pod.uid: pod for pod in active or ()}

    async def _pod(self, pod: PodState, known: Pod | None, held: Owners) -> wire.PodResources:
        specified = {each.name: each for each in known.containers} if known else {}
        chosen = {
            name: pod.containers[name]
            for name in sorted(pod.containers, key=lambda name: place(specified.get(name), name))
            if stays(specified.get(name))
        }
        return wire.PodResources(
            name=pod.name,
            namespace=pod.namespace,
            containers=tuple(
                await asyncio.gather(
                    *(
                        self._container(
                            pod.uid,
                            name,
                            holding,
                            exclusive_cpus(
                                holding,
                                specified.get(name),
                                held,
                                known.requests if known else {},
                            ),
                        )
                        for name, holding in chosen.items()
                    )
                )
            ),
            pod_role=pod.role,
            pod_type=pod.type,
            labels=dict(pod.labels),
            annotations=dict(pod.annotations),
        )

    async def _container(
        self, uid: str, name: str, holding: ContainerHolding, own: CpuSet
    ) -> wire.ContainerResources:
        told = await asyncio.gather(
            *(
                self._told(uid, name, resource, info)
                for resource, info in sorted(holding.allocations.items())
                if not is_class_resource(resource)
            )
        )
        return wire.ContainerResources(
            name=name,
            devices=tuple(held_devices(holding.allocations, self._devices, MEMORY)),
            cpu_ids=tuple(sorted(own)),
            memory=tuple(memories(holding.allocations)),
            resources=told_by_name(told),
        )

    async def _told(
        self, uid: str, container: str, resource: str, info: ResourceAllocationInfo
    ) -> Mapping[str, TopologyAwareResource]:
        """In the words of the plugin of that name; its absence is no reason to say less."""
        made = {resource: of_allocation(info)}
        plugin = self._plugins.of(resource)
        if plugin is None or not plugin.up:
            return made
        question = GetTopologyAwareResourcesRequest(pod_uid=uid, container_name=container)
        try:
            async with asyncio.timeout(self._wait_seconds):
                answer = await plugin.call(GET_TOPOLOGY_AWARE_RESOURCES, question)
        except (PluginError, TimeoutError):
            return made
        found = answer.container_topology_aware_resources
        return {**made, **found.allocated_resources} if found else made


def place(specified: ContainerSpec | None, name: str) -> tuple[int, int, str]:
    """Containers come in the order of the pod's lists, those in no list by name."""
    if specified is None:
        return 2, 0, name
    return int(specified.type is not ContainerType.INIT), specified.index, name


def stays(specified: ContainerSpec | None) -> bool:
    """Init containers that end are not listed, as in the kubelet."""
    if specified is None:
        return True
    return specified.restartable or specified.type is not ContainerType.INIT


def memories(allocations: Allocations) -> Iterable[wire.ContainerMemory]:
    for name, info in sorted(allocations.items()):
        if name.startswith(MEMORY):
            for node, size in sorted(info.topology_assignments.items()):
                yield memory(name, node, size)


def memory(name: str, node: int, size: int) -> wire.ContainerMemory:
    where = TopologyInfo(nodes=(NUMANode(ID=node),))
    return wire.ContainerMemory(memory_type=name, size=size, topology=where)


def by_node(quantities: Iterable[TopologyAwareQuantity]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for each in quantities:
        found[each.node] = found.get(each.node, 0) + int(each.resource_value)
    return dict(sorted(found.items()))


def of_allocation(info: ResourceAllocationInfo) -> TopologyAwareResource:
    listed = tuple(
        TopologyAwareQuantity(resource_value=float(amount), node=node)
        for node, amount in sorted(info.topology_assignments.items())
    )
    return TopologyAwareResource(
        is_node_resource=info.is_node_resource,
        is_scalar_resource=info.is_scalar_resource,
        aggregated_quantity=info.allocated_quantity,
        original_aggregated_quantity=info.allocated_quantity,
        topology_aware_quantity_list=listed,
        original_topology_aware_quantity_list=listed,
    )


def told_by_name(
    told: Iterable[Mapping[str, TopologyAwareResource]],
) -> tuple[wire.TopologyAwareResource, ...]:
    found = {name: each for one in told for name, each in one.items()}
    return tuple(
        wire.TopologyAwareResource(
            resource_name=name,
            **{field: getattr(found[name], field) for field in found[name].__struct_fields__},
        )
        for name in sorted(found)
    )
