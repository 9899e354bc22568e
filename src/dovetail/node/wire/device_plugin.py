"""`v1beta1` of device plugins: what they are asked, and what they ask of the kubelet and of us.

All numbers below 100 are Kubernetes' own. `Deallocate` and the option that tells of it are ours:
the specification of resource classes has that call, and upstream never had it. Others skip them.
"""

from __future__ import annotations

from typing import Annotated

from dovetail.node.wire.resource_plugin import DeviceSpec, Empty, Mount, TopologyInfo
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

VERSION = "v1beta1"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"

KUBELET_SOCKET = "kubelet.sock"
"""Where plugins register, beside their own sockets."""


class DevicePluginOptions(Message):
    pre_start_required: Annotated[bool, 1] = False
    get_preferred_allocation_available: Annotated[bool, 2] = False
    deallocates: Annotated[bool, 100] = False
    """Ours: it serves Deallocate."""


class RegisterRequest(Message):
    version: Annotated[str, 1] = ""
    endpoint: Annotated[str, 2] = ""
    """The name of the socket, in the directory of the one that is called."""
    resource_name: Annotated[str, 3] = ""
    options: Annotated[DevicePluginOptions | None, 4] = None


class Device(Message):
    ID: Annotated[str, 1] = ""
    health: Annotated[str, 2] = ""
    topology: Annotated[TopologyInfo | None, 3] = None


class ListAndWatchResponse(Message):
    devices: Annotated[tuple[Device, ...], 1] = ()


class ContainerAllocateRequest(Message):
    devices_ids: Annotated[tuple[str, ...], 1] = ()


class AllocateRequest(Message):
    container_requests: Annotated[tuple[ContainerAllocateRequest, ...], 1] = ()


class CDIDevice(Message):
    name: Annotated[str, 1] = ""


class ContainerAllocateResponse(Message):
    envs: Annotated[dict[str, str], 1] = {}
    mounts: Annotated[tuple[Mount, ...], 2] = ()
    devices: Annotated[tuple[DeviceSpec, ...], 3] = ()
    annotations: Annotated[dict[str, str], 4] = {}
    cdi_devices: Annotated[tuple[CDIDevice, ...], 5] = ()


class AllocateResponse(Message):
    container_responses: Annotated[tuple[ContainerAllocateResponse, ...], 1] = ()


class PreStartContainerRequest(Message):
    devices_ids: Annotated[tuple[str, ...], 1] = ()


class PreStartContainerResponse(Message):
    pass


class ContainerPreferredAllocationRequest(Message):
    available_deviceIDs: Annotated[tuple[str, ...], 1] = ()  # noqa: N815
    must_include_deviceIDs: Annotated[tuple[str, ...], 2] = ()  # noqa: N815
    allocation_size: Annotated[int, 3] = 0


class PreferredAllocationRequest(Message):
    container_requests: Annotated[tuple[ContainerPreferredAllocationRequest, ...], 1] = ()


class ContainerPreferredAllocationResponse(Message):
    deviceIDs: Annotated[tuple[str, ...], 1] = ()  # noqa: N815


class PreferredAllocationResponse(Message):
    container_responses: Annotated[tuple[ContainerPreferredAllocationResponse, ...], 1] = ()


class DeallocateRequest(Message):
    devices_ids: Annotated[tuple[str, ...], 1] = ()


class DeallocateResponse(Message):
    pass


REGISTER = Method(f"{VERSION}.Registration", "Register", RegisterRequest, Empty)

SERVICE = f"{VERSION}.DevicePlugin"
GET_DEVICE_PLUGIN_OPTIONS = Method(SERVICE, "GetDevicePluginOptions", Empty, DevicePluginOptions)
LIST_AND_WATCH = Method(SERVICE, "ListAndWatch", Empty, ListAndWatchResponse)
"""Its answers are a stream: each has all devices."""
ALLOCATE = Method(SERVICE, "Allocate", AllocateRequest, AllocateResponse)
PRE_START_CONTAINER = Method(
    SERVICE, "PreStartContainer", PreStartContainerRequest, PreStartContainerResponse
)
GET_PREFERRED_ALLOCATION = Method(
    SERVICE, "GetPreferredAllocation", PreferredAllocationRequest, PreferredAllocationResponse
)
DEALLOCATE = Method(SERVICE, "Deallocate", DeallocateRequest, DeallocateResponse)
