"""`resourceplugin.v1alpha1`: what the agent asks of resource plugins."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

VERSION = "v1alpha1"


class ContainerType(IntEnum):
    INIT = 0
    MAIN = 1
    SIDECAR = 2
    EPHEMERAL = 3


class TopologyLevel(IntEnum):
    NUMA = 0
    SOCKET = 1


class Empty(Message):
    pass


class ResourcePluginOptions(Message):
    pre_start_required: Annotated[bool, 1] = False
    with_topology_alignment: Annotated[bool, 2] = False
    need_reconcile: Annotated[bool, 3] = False
    associated_devices: Annotated[tuple[str, ...], 4] = ()
    extra_resources: Annotated[tuple[str, ...], 5] = ()


class RegisterRequest(Message):
    """The older way to register: the plugin calls."""

    version: Annotated[str, 1] = ""
    endpoint: Annotated[str, 2] = ""
    """The name of the socket, in the directory of the one that was called."""
    resource_name: Annotated[str, 3] = ""
    options: Annotated[ResourcePluginOptions | None, 4] = None


class TopologyHint(Message):
    nodes: Annotated[tuple[int, ...], 1] = ()
    preferred: Annotated[bool, 2] = False


class ListOfTopologyHints(Message):
    hints: Annotated[tuple[TopologyHint, ...], 1] = ()


class ChosenDevice(Message):
    """A device that the scheduler gave to the container: that one is meant, and no other."""

    resource: Annotated[str, 1] = ""
    id: Annotated[str, 2] = ""
    units: Annotated[int, 3] = 0
    """Of one that is a pool, as huge pages of a NUMA node."""


class ResourceRequest(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    container_name: Annotated[str, 4] = ""
    container_type: Annotated[ContainerType, 5] = ContainerType.INIT
    container_index: Annotated[int, 6] = 0
    pod_role: Annotated[str, 7] = ""
    pod_type: Annotated[str, 8] = ""
    resource_name: Annotated[str, 9] = ""
    hint: Annotated[TopologyHint | None, 10] = None
    resource_requests: Annotated[dict[str, float], 11] = {}
    labels: Annotated[dict[str, str], 12] = {}
    annotations: Annotated[dict[str, str], 13] = {}
    native_qos_class: Annotated[str, 14] = ""
    runtime_class: Annotated[str, 15] = ""
    limits: Annotated[dict[str, float], 100] = {}
    """Ours, as all from 100 on: others skip it. By the names of resource_requests."""
    resource_names: Annotated[dict[str, str], 101] = {}
    """The plugin's own names of resources that the pod calls otherwise, by the pod's."""
    chosen_devices: Annotated[tuple[ChosenDevice, ...], 110] = ()
    """A plugin that gives them says so in `device_ids`; one that cannot must refuse."""


class ResourceHintsResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    container_name: Annotated[str, 4] = ""
    container_type: Annotated[ContainerType, 5] = ContainerType.INIT
    container_index: Annotated[int, 6] = 0
    pod_role: Annotated[str, 7] = ""
    pod_type: Annotated[str, 8] = ""
    resource_name: Annotated[str, 9] = ""
    resource_hints: Annotated[dict[str, ListOfTopologyHints | None], 10] = {}
    """None, like no entry at all: no preference. No hints: no possible affinity."""
    labels: Annotated[dict[str, str], 11] = {}
    annotations: Annotated[dict[str, str], 12] = {}
    native_qos_class: Annotated[str, 13] = ""


class Mount(Message):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    read_only: Annotated[bool, 3] = False


class DeviceSpec(Message):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    permissions: Annotated[str, 3] = ""


class ResourceAllocationInfo(Message):
    oci_property_name: Annotated[str, 1] = ""
    """A field of LinuxContainerResources, by its Go name."""
    is_node_resource: Annotated[bool, 2] = False
    is_scalar_resource: Annotated[bool, 3] = False
    allocated_quantity: Annotated[float, 4] = 0.0
    allocation_result: Annotated[str, 5] = ""
    envs: Annotated[dict[str, str], 6] = {}
    annotations: Annotated[dict[str, str], 7] = {}
    resource_hints: Annotated[ListOfTopologyHints | None, 8] = None
    topology_assignments: Annotated[dict[int, int], 9] = {}
    mounts: Annotated[tuple[Mount, ...], 10] = ()
    devices: Annotated[tuple[DeviceSpec, ...], 11] = ()
    device_ids: Annotated[tuple[str, ...], 100] = ()
    """Ours: which of the `chosen_devices` of a request it is."""
    cdi_devices: Annotated[tuple[str, ...], 101] = ()
    """Ours: full names, as vendor.com/gpu=0, of devices that the runtime knows by CDI."""


class ResourceAllocation(Message):
    resource_allocation: Annotated[dict[str, ResourceAllocationInfo], 1] = {}
    """By name of the resource; there may be others than the one asked for."""


class ResourceAllocationResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    container_name: Annotated[str, 4] = ""
    container_type: Annotated[ContainerType, 5] = ContainerType.INIT
    container_index: Annotated[int, 6] = 0
    pod_role: Annotated[str, 7] = ""
    pod_type: Annotated[str, 8] = ""
    resource_name: Annotated[str, 9] = ""
    allocation_result: Annotated[ResourceAllocation | None, 10] = None
    labels: Annotated[dict[str, str], 11] = {}
    annotations: Annotated[dict[str, str], 12] = {}
    native_qos_class: Annotated[str, 13] = ""


class PodResourceRequest(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    pod_role: Annotated[str, 4] = ""
    pod_type: Annotated[str, 5] = ""
    resource_name: Annotated[str, 6] = ""
    hint: Annotated[TopologyHint | None, 7] = None
    resource_requests: Annotated[dict[str, float], 8] = {}
    labels: Annotated[dict[str, str], 9] = {}
    annotations: Annotated[dict[str, str], 10] = {}
    native_qos_class: Annotated[str, 14] = ""
    """Ours, numbered as in ResourceRequest: others do not send it, and skip it if they get it."""
    limits: Annotated[dict[str, float], 100] = {}
    """As in ResourceRequest."""
    resource_names: Annotated[dict[str, str], 101] = {}
    pod_level: Annotated[bool, 102] = False
    """Whether the pod itself asks for it (`spec.resources`); else it is its containers' sum."""
    chosen_devices: Annotated[tuple[ChosenDevice, ...], 110] = ()
    """Of all containers."""


class PodResourceHintsResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    pod_role: Annotated[str, 4] = ""
    pod_type: Annotated[str, 5] = ""
    resource_name: Annotated[str, 6] = ""
    resource_hints: Annotated[dict[str, ListOfTopologyHints | None], 7] = {}
    labels: Annotated[dict[str, str], 8] = {}
    annotations: Annotated[dict[str, str], 9] = {}


class PodResourceAllocationResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    pod_role: Annotated[str, 4] = ""
    pod_type: Annotated[str, 5] = ""
    resource_name: Annotated[str, 6] = ""
    allocation_result: Annotated[ResourceAllocation | None, 7] = None
    labels: Annotated[dict[str, str], 8] = {}
    annotations: Annotated[dict[str, str], 9] = {}


class ContainerResources(Message):
    container_resources: Annotated[dict[str, ResourceAllocation], 1] = {}
    """By name of the container."""


class GetResourcesAllocationRequest(Message):
    pass


class GetResourcesAllocationResponse(Message):
    pod_resources: Annotated[dict[str, ContainerResources], 1] = {}
    """By uid of the pod."""


class RemovePodRequest(Message):
    pod_uid: Annotated[str, 1] = ""


class RemovePodResponse(Message):
    pass


class TopologyAwareQuantity(Message):
    resource_value: Annotated[float, 1] = 0.0
    node: Annotated[int, 2] = 0
    name: Annotated[str, 3] = ""
    type: Annotated[str, 4] = ""
    topology_level: Annotated[TopologyLevel, 5] = TopologyLevel.NUMA
    annotations: Annotated[dict[str, str], 6] = {}


class TopologyAwareResource(Message):
    is_node_resource: Annotated[bool, 1] = False
    is_scalar_resource: Annotated[bool, 2] = False
    aggregated_quantity: Annotated[float, 3] = 0.0
    original_aggregated_quantity: Annotated[float, 4] = 0.0
    topology_aware_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 5] = ()
    original_topology_aware_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 6] = ()


class ContainerTopologyAwareResources(Message):
    container_name: Annotated[str, 1] = ""
    allocated_resources: Annotated[dict[str, TopologyAwareResource], 2] = {}


class GetTopologyAwareResourcesRequest(Message):
    pod_uid: Annotated[str, 1] = ""
    container_name: Annotated[str, 2] = ""


class GetTopologyAwareResourcesResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_name: Annotated[str, 2] = ""
    pod_namespace: Annotated[str, 3] = ""
    container_topology_aware_resources: Annotated[ContainerTopologyAwareResources | None, 4] = None


class AllocatableTopologyAwareResource(Message):
    is_node_resource: Annotated[bool, 1] = False
    is_scalar_resource: Annotated[bool, 2] = False
    aggregated_allocatable_quantity: Annotated[float, 3] = 0.0
    topology_aware_allocatable_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 4] = ()
    aggregated_capacity_quantity: Annotated[float, 5] = 0.0
    topology_aware_capacity_quantity_list: Annotated[tuple[TopologyAwareQuantity, ...], 6] = ()


class GetTopologyAwareAllocatableResourcesRequest(Message):
    pass


class GetTopologyAwareAllocatableResourcesResponse(Message):
    allocatable_resources: Annotated[dict[str, AllocatableTopologyAwareResource], 1] = {}


class PreStartContainerRequest(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    container_name: Annotated[str, 4] = ""


class PreStartContainerResponse(Message):
    pass


class NUMANode(Message):
    ID: Annotated[int, 1] = 0


class TopologyInfo(Message):
    nodes: Annotated[tuple[NUMANode, ...], 1] = ()


REGISTER = Method(f"resourceplugin.{VERSION}.Registration", "Register", RegisterRequest, Empty)

SERVICE = f"resourceplugin.{VERSION}.ResourcePlugin"
GET_TOPOLOGY_HINTS = Method(SERVICE, "GetTopologyHints", ResourceRequest, ResourceHintsResponse)
GET_POD_TOPOLOGY_HINTS = Method(
    SERVICE, "GetPodTopologyHints", PodResourceRequest, PodResourceHintsResponse
)
REMOVE_POD = Method(SERVICE, "RemovePod", RemovePodRequest, RemovePodResponse)
GET_RESOURCES_ALLOCATION = Method(
    SERVICE,
    "GetResourcesAllocation",
    GetResourcesAllocationRequest,
    GetResourcesAllocationResponse,
)
GET_TOPOLOGY_AWARE_RESOURCES = Method(
    SERVICE,
    "GetTopologyAwareResources",
    GetTopologyAwareResourcesRequest,
    GetTopologyAwareResourcesResponse,
)
GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES = Method(
    SERVICE,
    "GetTopologyAwareAllocatableResources",
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareAllocatableResourcesResponse,
)
GET_RESOURCE_PLUGIN_OPTIONS = Method(
    SERVICE, "GetResourcePluginOptions", Empty, ResourcePluginOptions
)
ALLOCATE = Method(SERVICE, "Allocate", ResourceRequest, ResourceAllocationResponse)
ALLOCATE_FOR_POD = Method(
    SERVICE, "AllocateForPod", PodResourceRequest, PodResourceAllocationResponse
)
PRE_START_CONTAINER = Method(
    SERVICE, "PreStartContainer", PreStartContainerRequest, PreStartContainerResponse
)
