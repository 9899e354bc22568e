"""`v1.PodResourcesLister`: how monitoring agents ask a node which pod holds what.

The numbers up to 11 are Kubernetes' own; from 12 on they are Katalyst's, which tell what the
resource plugins gave and where.
"""

from __future__ import annotations

from typing import Annotated

from dovetail.node.wire.resource_plugin import TopologyAwareQuantity, TopologyInfo
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class ContainerDevices(Message):
    resource_name: Annotated[str, 1] = ""
    device_ids: Annotated[tuple[str, ...], 2] = ()
    topology: Annotated[TopologyInfo | None, 3] = None


class ContainerMemory(Message):
    memory_type: Annotated[str, 1] = ""
    size: Annotated[int, 2] = 0
    topology: Annotated[TopologyInfo | None, 3] = None


class TopologyAwareResource(Message):
    """As plugins tell it, with the name of the resource first: all other numbers are one higher."""

    resource_name: Annotated[str, 1] = ""
    is_node_resource: Annotated[bool, 2] = False
    is_scalar_resource: Annotated[bool, 3] = False
    aggregated_quantity: Annotated[float, 4] = 0.0
    original_aggregated_quantity: Annotated[float, 5] = 0.0
    topology_aware_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 6] = ()
    original_topology_aware_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 7] = ()


class AllocatableTopologyAwareResource(Message):
    resource_name: Annotated[str, 1] = ""
    is_node_resource: Annotated[bool, 2] = False
    is_scalar_resource: Annotated[bool, 3] = False
    aggregated_allocatable_quantity: Annotated[float, 4] = 0.0
    topology_aware_allocatable_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 5] = ()
    aggregated_capacity_quantity: Annotated[float, 6] = 0.0
    topology_aware_capacity_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 7] = ()


class ContainerResources(Message):
    name: Annotated[str, 1] = ""
    devices: Annotated[tuple[ContainerDevices, ...], 2] = ()
    cpu_ids: Annotated[tuple[int, ...], 3] = ()
    memory: Annotated[tuple[ContainerMemory, ...], 4] = ()
    resources: Annotated[tuple[TopologyAwareResource, ...], 15] = ()


class PodResources(Message):
    name: Annotated[str, 1] = ""
    namespace: Annotated[str, 2] = ""
    containers: Annotated[tuple[ContainerResources, ...], 3] = ()
    cpu_ids: Annotated[tuple[int, ...], 4] = ()
    """Of the pod as a whole, if it asked as a whole."""
    memory: Annotated[tuple[ContainerMemory, ...], 5] = ()
    pod_role: Annotated[str, 12] = ""
    pod_type: Annotated[str, 13] = ""
    labels: Annotated[dict[str, str], 14] = {}
    annotations: Annotated[dict[str, str], 15] = {}


class ListPodResourcesRequest(Message):
    pass


class ListPodResourcesResponse(Message):
    pod_resources: Annotated[tuple[PodResources, ...], 1] = ()


class GetPodResourcesRequest(Message):
    pod_name: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""


class GetPodResourcesResponse(Message):
    pod_resources: Annotated[PodResources | None, 1] = None


class AllocatableResourcesRequest(Message):
    pass


class AllocatableResourcesResponse(Message):
    devices: Annotated[tuple[ContainerDevices, ...], 1] = ()
    cpu_ids: Annotated[tuple[int, ...], 2] = ()
    memory: Annotated[tuple[ContainerMemory, ...], 3] = ()
    resources: Annotated[tuple[AllocatableTopologyAwareResource, ...], 15] = ()


SERVICE = "v1.PodResourcesLister"
LIST = Method(SERVICE, "List", ListPodResourcesRequest, ListPodResourcesResponse)
GET = Method(SERVICE, "Get", GetPodResourcesRequest, GetPodResourcesResponse)
GET_ALLOCATABLE_RESOURCES = Method(
    SERVICE, "GetAllocatableResources", AllocatableResourcesRequest, AllocatableResourcesResponse
)
