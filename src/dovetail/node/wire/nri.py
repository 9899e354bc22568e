"""`nri.pkg.api.v1alpha1`: the part of the node resource interface that we use.

Up to NRI 0.9 most events come in StateChange, later each in a method of its own whose message has
the same first fields.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from msgspec import field

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class Event(IntEnum):
    UNKNOWN = 0
    RUN_POD_SANDBOX = 1
    STOP_POD_SANDBOX = 2
    REMOVE_POD_SANDBOX = 3
    CREATE_CONTAINER = 4
    POST_CREATE_CONTAINER = 5
    START_CONTAINER = 6
    POST_START_CONTAINER = 7
    UPDATE_CONTAINER = 8
    POST_UPDATE_CONTAINER = 9
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11


class Empty(Message):
    pass


class RegisterPluginRequest(Message):
    plugin_name: Annotated[str, 1] = ""
    plugin_idx: Annotated[str, 2] = ""


class ConfigureRequest(Message):
    config: Annotated[str, 1] = ""
    runtime_name: Annotated[str, 2] = ""
    runtime_version: Annotated[str, 3] = ""
    registration_timeout: Annotated[int, 4] = 0
    request_timeout: Annotated[int, 5] = 0
    """Milliseconds; 0 from runtimes that do not say."""


class ConfigureResponse(Message):
    events: Annotated[int, 2] = 0
    """Bit n - 1 for event n."""


class OptionalInt(Message):
    value: Annotated[int, 1] = 0


class LinuxMemory(Message):
    limit: Annotated[OptionalInt | None, 1] = None
    swap: Annotated[OptionalInt | None, 3] = None


class LinuxCPU(Message):
    shares: Annotated[OptionalInt | None, 1] = None
    quota: Annotated[OptionalInt | None, 2] = None
    period: Annotated[OptionalInt | None, 3] = None
    cpus: Annotated[str, 6] = ""
    mems: Annotated[str, 7] = ""


class HugepageLimit(Message):
    page_size: Annotated[str, 1] = ""
    limit: Annotated[int, 2] = 0


class LinuxResources(Message):
    memory: Annotated[LinuxMemory | None, 1] = None
    cpu: Annotated[LinuxCPU | None, 2] = None
    hugepage_limits: Annotated[tuple[HugepageLimit, ...], 3] = ()
    unified: Annotated[dict[str, str], 6] = {}


class LinuxDevice(Message):
    path: Annotated[str, 1] = ""
    type: Annotated[str, 2] = ""
    major: Annotated[int, 3] = 0
    minor: Annotated[int, 4] = 0


class Mount(Message):
    destination: Annotated[str, 1] = ""
    type: Annotated[str, 2] = ""
    source: Annotated[str, 3] = ""
    options: Annotated[tuple[str, ...], 4] = ()


class PodSandbox(Message):
    id: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    uid: Annotated[str, 3] = ""
    namespace: Annotated[str, 4] = ""
    labels: Annotated[dict[str, str], 5] = {}
    annotations: Annotated[dict[str, str], 6] = {}
    runtime_handler: Annotated[str, 7] = ""


class LinuxContainer(Message):
    devices: Annotated[tuple[LinuxDevice, ...], 2] = ()
    resources: Annotated[LinuxResources | None, 3] = None
    oom_score_adj: Annotated[OptionalInt | None, 4] = None


class Container(Message):
    id: Annotated[str, 1] = ""
    name: Annotated[str, 3] = ""
    annotations: Annotated[dict[str, str], 6] = {}
    env: Annotated[tuple[str, ...], 8] = ()
    """Each "NAME=value"."""
    mounts: Annotated[tuple[Mount, ...], 9] = ()
    linux: Annotated[LinuxContainer, 11] = field(default_factory=LinuxContainer)


class SynchronizeRequest(Message):
    more: Annotated[bool, 3] = False


class SynchronizeResponse(Message):
    more: Annotated[bool, 2] = False
    """That we go on listening, if more was announced."""


class PodEvent(Message):
    """What any method about a pod or a container has."""

    pod: Annotated[PodSandbox, 1] = field(default_factory=PodSandbox)
    container: Annotated[Container, 2] = field(default_factory=Container)
    linux_resources: Annotated[LinuxResources | None, 3] = None
    """Of UpdateContainer: what it is to have."""


class StateChangeEvent(Message):
    event: Annotated[Event, 1] = Event.UNKNOWN
    pod: Annotated[PodSandbox, 2] = field(default_factory=PodSandbox)
    container: Annotated[Container, 3] = field(default_factory=Container)


class KeyValue(Message):
    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""


class LinuxContainerAdjustment(Message):
    devices: Annotated[tuple[LinuxDevice, ...], 1] = ()
    resources: Annotated[LinuxResources | None, 2] = None
    oom_score_adj: Annotated[OptionalInt | None, 4] = None


class CDIDevice(Message):
    name: Annotated[str, 1] = ""


class ContainerAdjustment(Message):
    annotations: Annotated[dict[str, str], 2] = {}
    mounts: Annotated[tuple[Mount, ...], 3] = ()
    env: Annotated[tuple[KeyValue, ...], 4] = ()
    linux: Annotated[LinuxContainerAdjustment | None, 6] = None
    CDI_devices: Annotated[tuple[CDIDevice, ...], 8] = ()
    """Since NRI 0.7."""


class CreateContainerResponse(Message):
    adjust: Annotated[ContainerAdjustment | None, 1] = None


class LinuxContainerUpdate(Message):
    resources: Annotated[LinuxResources | None, 1] = None


class ContainerUpdate(Message):
    container_id: Annotated[str, 1] = ""
    linux: Annotated[LinuxContainerUpdate | None, 2] = None


class UpdateContainerResponse(Message):
    update: Annotated[tuple[ContainerUpdate, ...], 1] = ()


class UpdateContainersRequest(Message):
    update: Annotated[tuple[ContainerUpdate, ...], 1] = ()


class UpdateContainersResponse(Message):
    failed: Annotated[tuple[ContainerUpdate, ...], 1] = ()


RUNTIME = "nri.pkg.api.v1alpha1.Runtime"
REGISTER_PLUGIN = Method(RUNTIME, "RegisterPlugin", RegisterPluginRequest, Empty)
UPDATE_CONTAINERS = Method(
    RUNTIME, "UpdateContainers", UpdateContainersRequest, UpdateContainersResponse
)
RUNTIME_CONNECTION = 2
"""The connection on which the plugin calls; on connection 1 the runtime does."""
