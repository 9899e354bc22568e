"""A plugin that follows roles: from messages to decisions and back, whatever the resource.

Every change is written down before it is answered, and a change that cannot be written is none.
"""
# ruff: noqa: ARG002 (some questions say nothing)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Generic

import grpc

from dovetail.node.hints.hint import BadHint, Hints, listed
from dovetail.node.plugins.common.holdings import H, PluginState
from dovetail.node.plugins.common.requests import (
    BadPluginRequest,
    Impossible,
    PluginRequest,
    QosClassUntold,
    container_request,
    pod_request,
)
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.sdk.plugin import ResourcePlugin, allocation_for, hints_for, refuse
from dovetail.node.topology import Machine
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ContainerResources,
    ContainerTopologyAwareResources,
    GetResourcesAllocationRequest,
    GetResourcesAllocationResponse,
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareAllocatableResourcesResponse,
    GetTopologyAwareResourcesRequest,
    GetTopologyAwareResourcesResponse,
    PodResourceAllocationResponse,
    PodResourceHintsResponse,
    PodResourceRequest,
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyAwareQuantity,
    TopologyAwareResource,
)
from dovetail.wire.rpc import Refused


class RolePlugin(ResourcePlugin, ABC, Generic[H]):
    state: PluginState[H]

    def __init__(self, resource: str, machine: Machine, book: RoleBook, store: PluginStore) -> None:
        super().__init__(
            resource, ResourcePluginOptions(with_topology_alignment=True, need_reconcile=True)
        )
        self.machine, self.book, self.store = machine, book, store

    @abstractmethod
    def adopt(self, book: RoleBook) -> None:
        """Follow another file of roles from now on. Containers keep what they have."""

    @abstractmethod
    def hints(self, request: PluginRequest) -> Hints:
        """Where it could be; raises Impossible."""

    @abstractmethod
    def state_with(self, request: PluginRequest) -> PluginState[H]:
        """The state in which the container has it; raises Impossible."""

    @abstractmethod
    def info(self, holding: H) -> ResourceAllocationInfo:
        """What a container has now."""

    def infos(self, holding: H) -> Mapping[str, ResourceAllocationInfo]:
        """That, and what accompanies it, by resource."""
        return {self.resource: self.info(holding)}

    @abstractmethod
    def by_node(self, holding: H) -> Mapping[str, Mapping[int, float]]:
        """What a container has now, by resource and NUMA node."""

    @abstractmethod
    def allocatable(self) -> Mapping[str, AllocatableTopologyAwareResource]:
        """What there is, by resource."""

    def keep(self, state: PluginState[H]) -> None:
        """Write it down, and only then act by it; raises StateNotSaved."""
        if state != self.state:
            self.store.save(state)
            self.state = state

    async def get_topology_hints(self, request: ResourceRequest) -> ResourceHintsResponse:
        with refusing():
            found = listed(self.hints(container_request(self.book, request, self.machine.node_ids)))
        return hints_for(request, {self.resource: found.hints} if found else None)

    async def get_pod_topology_hints(self, request: PodResourceRequest) -> PodResourceHintsResponse:
        with refusing():
            found = listed(self.hints(pod_request(self.book, request, self.machine.node_ids)))
        return PodResourceHintsResponse(
            pod_uid=request.pod_uid,
            pod_namespace=request.pod_namespace,
            pod_name=request.pod_name,
            pod_role=request.pod_role,
            pod_type=request.pod_type,
            resource_name=request.resource_name,
            resource_hints={self.resource: found} if found else {},
            labels=request.labels,
            annotations=request.annotations,
        )

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        with refusing():
            asked = container_request(self.book, request, self.machine.node_ids)
            self.keep(self.state_with(asked))
        holding = self.state.of(asked.pod, asked.container)
        assert holding
        return allocation_for(request, self.infos(holding))

    async def allocate_for_pod(self, request: PodResourceRequest) -> PodResourceAllocationResponse:
        """All containers of a pod share what it asks for itself; else each has its own."""
        if not request.pod_level:
            words = "containers that ask by themselves are given it one by one"
            raise Refused(grpc.StatusCode.UNIMPLEMENTED, words)
        with refusing():
            asked = pod_request(self.book, request, self.machine.node_ids)
            self.keep(self.state_with(asked).as_a_whole(asked.pod))
        holding = self.state.of(asked.pod, "")
        assert holding
        return PodResourceAllocationResponse(
            pod_uid=request.pod_uid,
            pod_namespace=request.pod_namespace,
            pod_name=request.pod_name,
            pod_role=request.pod_role,
            pod_type=request.pod_type,
            resource_name=request.resource_name,
            allocation_result=ResourceAllocation(resource_allocation=dict(self.infos(holding))),
            labels=request.labels,
            annotations=request.annotations,
        )

    async def remove_pod(self, request: RemovePodRequest) -> RemovePodResponse:
        with refusing():
            self.keep(self.state.without(request.pod_uid))
        return RemovePodResponse()

    async def get_resources_allocation(
        self, request: GetResourcesAllocationRequest
    ) -> GetResourcesAllocationResponse:
        pods: dict[str, ContainerResources] = {}
        for each in self.state.holdings:
            pod = pods.setdefault(each.pod, ContainerResources(container_resources={}))
            pod.container_resources[each.container] = ResourceAllocation(
                resource_allocation=dict(self.infos(each))
            )
        return GetResourcesAllocationResponse(pod_resources=pods)

    async def get_topology_aware_resources(
        self, request: GetTopologyAwareResourcesRequest
    ) -> GetTopologyAwareResourcesResponse:
        own = self.state.of(request.pod_uid, request.container_name)
        holding = own or self.state.of(request.pod_uid, "")
        if holding is None:
            return await super().get_topology_aware_resources(request)
        return GetTopologyAwareResourcesResponse(
            pod_uid=holding.pod,
            pod_name=holding.name,
            pod_namespace=holding.namespace,
            container_topology_aware_resources=ContainerTopologyAwareResources(
                container_name=request.container_name,
                allocated_resources={
                    name: allocated_resource(amounts)
                    for name, amounts in self.by_node(holding).items()
                },
            ),
        )

    async def get_topology_aware_allocatable_resources(
        self, request: GetTopologyAwareAllocatableResourcesRequest
    ) -> GetTopologyAwareAllocatableResourcesResponse:
        return GetTopologyAwareAllocatableResourcesResponse(
            allocatable_resources=dict(self.allocatable())
        )


def by_node(amounts: Mapping[int, float]) -> tuple[TopologyAwareQuantity, ...]:
    return tuple(
        TopologyAwareQuantity(resource_value=float(amounts[node]), node=node)
        for node in sorted(amounts)
    )


def allocated_resource(amounts: Mapping[int, float]) -> TopologyAwareResource:
    total, quantities = float(sum(amounts.values())), by_node(amounts)
    return TopologyAwareResource(
        is_scalar_resource=True,
        aggregated_quantity=total,
        original_aggregated_quantity=total,
        topology_aware_quantity_list=quantities,
        original_topology_aware_quantity_list=quantities,
    )


def allocatable_resource(
    allocatable: Mapping[int, float], capacity: Mapping[int, float]
) -> AllocatableTopologyAwareResource:
    """Of a resource that can be counted and that the node's status has anyway."""
    return AllocatableTopologyAwareResource(
        is_scalar_resource=True,
        aggregated_allocatable_quantity=float(sum(allocatable.values())),
        topology_aware_allocatable_quantity_list=by_node(allocatable),
        aggregated_capacity_quantity=float(sum(capacity.values())),
        topology_aware_capacity_quantity_list=by_node(capacity),
    )


@contextmanager
def refusing() -> Iterator[None]:
    """Errors of the domain as what gRPC says."""
    try:
        yield
    except Impossible as error:
        raise refuse(str(error)) from None
    except QosClassUntold as error:
        raise Refused(grpc.StatusCode.UNIMPLEMENTED, str(error)) from None
    except (BadPluginRequest, BadHint) as error:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
    except StateNotSaved as error:
        raise Refused(grpc.StatusCode.UNAVAILABLE, str(error)) from error
