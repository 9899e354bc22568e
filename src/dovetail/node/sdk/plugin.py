"""What a resource plugin answers, with a sensible default for everything but Allocate.

A plugin is a class derived from ResourcePlugin; `serving.py` puts it on a socket. Handlers run on
one event loop: between two awaits nothing else happens, so most plugins need no lock.
"""
# ruff: noqa: ARG002 (a default answer may not need the question)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import grpc
import structlog

from dovetail.node.wire import associated_devices, registration, resource_plugin
from dovetail.node.wire.associated_devices import (
    AssociatedDeviceAllocationResponse,
    AssociatedDeviceHintsResponse,
    AssociatedDeviceRequest,
    UpdateAllocatableAssociatedDevicesRequest,
    UpdateAllocatableAssociatedDevicesResponse,
)
from dovetail.node.wire.registration import (
    InfoRequest,
    PluginInfo,
    RegistrationStatus,
    RegistrationStatusResponse,
)
from dovetail.node.wire.resource_plugin import (
    ContainerTopologyAwareResources,
    Empty,
    GetResourcesAllocationRequest,
    GetResourcesAllocationResponse,
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareAllocatableResourcesResponse,
    GetTopologyAwareResourcesRequest,
    GetTopologyAwareResourcesResponse,
    ListOfTopologyHints,
    PodResourceAllocationResponse,
    PodResourceHintsResponse,
    PodResourceRequest,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyHint,
)
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Refused, Served

LOG = structlog.get_logger("dovetail.node.sdk")


class ResourcePlugin:
    """A plugin for one resource. To refuse, raise `refuse("why")`."""

    def __init__(self, resource: str, options: ResourcePluginOptions | None = None) -> None:
        """`resource` is what it registers for: "cpu", "memory", or any name pods may ask for."""
        self.resource = resource
        self.options = options or ResourcePluginOptions()

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        """Give the container what it asks for. Asked again for the same, answer the same."""
        raise NotImplementedError

    async def remove_pod(self, request: RemovePodRequest) -> RemovePodResponse:
        """Take back all that the pod holds. Must not fail for a pod that holds nothing."""
        return RemovePodResponse()

    async def get_topology_hints(self, request: ResourceRequest) -> ResourceHintsResponse:
        """Where it could be given; asked only with the option with_topology_alignment."""
        return hints_for(request)

    async def get_resources_allocation(
        self, request: GetResourcesAllocationRequest
    ) -> GetResourcesAllocationResponse:
        """What each container holds now; asked every few seconds with the option need_reconcile."""
        return GetResourcesAllocationResponse()

    async def get_topology_aware_resources(
        self, request: GetTopologyAwareResourcesRequest
    ) -> GetTopologyAwareResourcesResponse:
        """What one container holds, by NUMA node: for the pod resources API."""
        return GetTopologyAwareResourcesResponse(
            pod_uid=request.pod_uid,
            container_topology_aware_resources=ContainerTopologyAwareResources(
                container_name=request.container_name
            ),
        )

    async def get_topology_aware_allocatable_resources(
        self, request: GetTopologyAwareAllocatableResourcesRequest
    ) -> GetTopologyAwareAllocatableResourcesResponse:
        """What there is in all, by NUMA node: for the pod resources API and the node's status."""
        return GetTopologyAwareAllocatableResourcesResponse()

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        """Just before a container starts; asked only with the option pre_start_required."""
        return PreStartContainerResponse()

    async def get_pod_topology_hints(self, request: PodResourceRequest) -> PodResourceHintsResponse:
        raise _not_offered("GetPodTopologyHints")

    async def allocate_for_pod(self, request: PodResourceRequest) -> PodResourceAllocationResponse:
        raise _not_offered("AllocateForPod")

    async def get_associated_device_topology_hints(
        self, request: AssociatedDeviceRequest
    ) -> AssociatedDeviceHintsResponse:
        raise _not_offered("GetAssociatedDeviceTopologyHints")

    async def update_allocatable_associated_devices(
        self, request: UpdateAllocatableAssociatedDevicesRequest
    ) -> UpdateAllocatableAssociatedDevicesResponse:
        raise _not_offered("UpdateAllocatableAssociatedDevices")

    async def allocate_associated_device(
        self, request: AssociatedDeviceRequest
    ) -> AssociatedDeviceAllocationResponse:
        raise _not_offered("AllocateAssociatedDevice")

    async def get_resource_plugin_options(self, request: Empty) -> ResourcePluginOptions:
        return self.options

    async def get_info(self, request: InfoRequest) -> PluginInfo:
        return PluginInfo(
            type=registration.RESOURCE_PLUGIN,
            name=self.resource,
            supported_versions=(resource_plugin.VERSION,),
        )

    async def notify_registration_status(
        self, status: RegistrationStatus
    ) -> RegistrationStatusResponse:
        """Whether the agent took the plugin. It tries again by itself, so a refusal is logged."""
        if status.plugin_registered:
            LOG.info("registered", resource=self.resource)
        else:
            LOG.warning("registration refused", resource=self.resource, error=status.error)
        return RegistrationStatusResponse()

    def served(self) -> Iterable[Served]:
        """All methods of both services, on one socket."""
        return (
            Served(registration.GET_INFO, self.get_info),
            Served(registration.NOTIFY_REGISTRATION_STATUS, self.notify_registration_status),
            Served(resource_plugin.GET_RESOURCE_PLUGIN_OPTIONS, self.get_resource_plugin_options),
            Served(resource_plugin.GET_TOPOLOGY_HINTS, self.get_topology_hints),
            Served(resource_plugin.GET_POD_TOPOLOGY_HINTS, self.get_pod_topology_hints),
            Served(resource_plugin.ALLOCATE, self.allocate),
            Served(resource_plugin.ALLOCATE_FOR_POD, self.allocate_for_pod),
            Served(resource_plugin.REMOVE_POD, self.remove_pod),
            Served(resource_plugin.GET_RESOURCES_ALLOCATION, self.get_resources_allocation),
            Served(resource_plugin.GET_TOPOLOGY_AWARE_RESOURCES, self.get_topology_aware_resources),
            Served(
                resource_plugin.GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES,
                self.get_topology_aware_allocatable_resources,
            ),
            Served(resource_plugin.PRE_START_CONTAINER, self.pre_start_container),
            Served(
                associated_devices.GET_ASSOCIATED_DEVICE_TOPOLOGY_HINTS,
                self.get_associated_device_topology_hints,
            ),
            Served(
                associated_devices.UPDATE_ALLOCATABLE_ASSOCIATED_DEVICES,
                self.update_allocatable_associated_devices,
            ),
            Served(associated_devices.ALLOCATE_ASSOCIATED_DEVICE, self.allocate_associated_device),
        )


def refuse(words: str) -> Refused:
    """To be raised: the request cannot be met. The words reach whoever wonders why."""
    return Refused(grpc.StatusCode.FAILED_PRECONDITION, words)


def _not_offered(method: str) -> Refused:
    return Refused(grpc.StatusCode.UNIMPLEMENTED, f"this plugin does not offer {method}")


def amounts_of(request: ResourceRequest | PodResourceRequest) -> dict[str, float]:
    """What is asked for, by the plugin's own names, whatever the pod calls it."""
    names = request.resource_names
    found = {names.get(name, name): amount for name, amount in request.resource_requests.items()}
    if request.resource_name not in found and len(found) == 1:
        # Others than our agent do not tell the names; the one resource is the one in question.
        (amount,) = found.values()
        return {request.resource_name: amount}
    return found


def hints_for(
    request: ResourceRequest, hints: Mapping[str, Iterable[TopologyHint]] | None = None
) -> ResourceHintsResponse:
    """An answer. A resource left out may be anywhere; one with no hints can be nowhere."""
    return ResourceHintsResponse(
        **_about(request),
        resource_hints={
            name: ListOfTopologyHints(hints=tuple(each)) for name, each in (hints or {}).items()
        },
        native_qos_class=request.native_qos_class,
    )


def allocation_for(
    request: ResourceRequest, given: Mapping[str, ResourceAllocationInfo]
) -> ResourceAllocationResponse:
    """An answer: what is given, by resource; other resources than the one asked for may be in."""
    return ResourceAllocationResponse(
        **_about(request),
        allocation_result=ResourceAllocation(resource_allocation=dict(given)),
        native_qos_class=request.native_qos_class,
    )


ECHOED = (
    "pod_uid",
    "pod_namespace",
    "pod_name",
    "container_name",
    "container_type",
    "container_index",
    "pod_role",
    "pod_type",
    "resource_name",
    "labels",
    "annotations",
)


def _about(request: Message) -> dict[str, Any]:
    """What an answer repeats, so that the agent sees whom it is for."""
    return {name: getattr(request, name) for name in ECHOED}
