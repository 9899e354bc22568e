"""`resourceplugin.v1alpha1`, of devices of device plugins that a resource plugin chooses."""

from __future__ import annotations

from typing import Annotated

from dovetail.node.wire.resource_plugin import (
    SERVICE,
    ContainerType,
    ListOfTopologyHints,
    ResourceRequest,
    TopologyHint,
    TopologyInfo,
)
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class AssociatedDevice(Message):
    ID: Annotated[str, 1] = ""
    health: Annotated[str, 2] = ""
    """Healthy or Unhealthy."""
    topology: Annotated[TopologyInfo | None, 3] = None


class UpdateAllocatableAssociatedDevicesRequest(Message):
    """What a device plugin offers, told to the resource plugin that gives it out."""

    device_name: Annotated[str, 1] = ""
    devices: Annotated[tuple[AssociatedDevice, ...], 2] = ()


class UpdateAllocatableAssociatedDevicesResponse(Message):
    pass


class DeviceRequest(Message):
    device_name: Annotated[str, 1] = ""
    hint: Annotated[TopologyHint | None, 2] = None
    available_devices: Annotated[tuple[str, ...], 3] = ()
    reusable_devices: Annotated[tuple[str, ...], 4] = ()
    device_request: Annotated[int, 5] = 0


class AssociatedDeviceRequest(Message):
    resource_request: Annotated[ResourceRequest | None, 1] = None
    device_request: Annotated[tuple[DeviceRequest, ...], 2] = ()
    accompany_resource_name: Annotated[str, 3] = ""
    device_name: Annotated[str, 4] = ""


class AssociatedDeviceHintsResponse(Message):
    pod_uid: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""
    pod_name: Annotated[str, 3] = ""
    container_name: Annotated[str, 4] = ""
    container_type: Annotated[ContainerType, 5] = ContainerType.INIT
    container_index: Annotated[int, 6] = 0
    pod_role: Annotated[str, 7] = ""
    pod_type: Annotated[str, 8] = ""
    device_name: Annotated[str, 9] = ""
    device_hints: Annotated[ListOfTopologyHints | None, 10] = None
    labels: Annotated[dict[str, str], 11] = {}
    annotations: Annotated[dict[str, str], 12] = {}


class AssociatedDeviceAllocation(Message):
    allocated_devices: Annotated[tuple[str, ...], 1] = ()


class AssociatedDeviceAllocationResponse(Message):
    allocation_result: Annotated[AssociatedDeviceAllocation | None, 1] = None


GET_ASSOCIATED_DEVICE_TOPOLOGY_HINTS = Method(
    SERVICE,
    "GetAssociatedDeviceTopologyHints",
    AssociatedDeviceRequest,
    AssociatedDeviceHintsResponse,
)
UPDATE_ALLOCATABLE_ASSOCIATED_DEVICES = Method(
    SERVICE,
    "UpdateAllocatableAssociatedDevices",
    UpdateAllocatableAssociatedDevicesRequest,
    UpdateAllocatableAssociatedDevicesResponse,
)
ALLOCATE_ASSOCIATED_DEVICE = Method(
    SERVICE,
    "AllocateAssociatedDevice",
    AssociatedDeviceRequest,
    AssociatedDeviceAllocationResponse,
)
