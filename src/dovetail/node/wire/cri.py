"""`runtime.v1`: the part of the container runtime interface that we read or edit.

Only the fields that matter here are declared. The library's form of a message keeps all others as
they came, so what a newer kubelet or runtime adds passes through an edit unharmed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from msgspec import field

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class ContainerState(IntEnum):
    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3


class PodSandboxMetadata(Message):
    name: Annotated[str, 1] = ""
    uid: Annotated[str, 2] = ""
    namespace: Annotated[str, 3] = ""


class PodSandboxConfig(Message):
    metadata: Annotated[PodSandboxMetadata, 1] = field(default_factory=PodSandboxMetadata)
    labels: Annotated[dict[str, str], 6] = {}
    annotations: Annotated[dict[str, str], 7] = {}


class RunPodSandboxRequest(Message):
    config: Annotated[PodSandboxConfig, 1] = field(default_factory=PodSandboxConfig)
    runtime_handler: Annotated[str, 2] = ""


class RunPodSandboxResponse(Message):
    pod_sandbox_id: Annotated[str, 1] = ""


class RemovePodSandboxRequest(Message):
    pod_sandbox_id: Annotated[str, 1] = ""


class SandboxState(IntEnum):
    READY = 0
    NOT_READY = 1


class PodSandbox(Message):
    id: Annotated[str, 1] = ""
    metadata: Annotated[PodSandboxMetadata, 2] = field(default_factory=PodSandboxMetadata)
    state: Annotated[SandboxState, 3] = SandboxState.READY
    labels: Annotated[dict[str, str], 5] = {}
    annotations: Annotated[dict[str, str], 6] = {}
    runtime_handler: Annotated[str, 7] = ""


class PodSandboxFilter(Message):
    id: Annotated[str, 1] = ""


class ListPodSandboxRequest(Message):
    filter: Annotated[PodSandboxFilter | None, 1] = None


class ListPodSandboxResponse(Message):
    items: Annotated[tuple[PodSandbox, ...], 1] = ()


class HugepageLimit(Message):
    page_size: Annotated[str, 1] = ""
    limit: Annotated[int, 2] = 0


class LinuxContainerResources(Message):
    cpu_period: Annotated[int, 1] = 0
    cpu_quota: Annotated[int, 2] = 0
    cpu_shares: Annotated[int, 3] = 0
    memory_limit_in_bytes: Annotated[int, 4] = 0
    oom_score_adj: Annotated[int, 5] = 0
    cpuset_cpus: Annotated[str, 6] = ""
    cpuset_mems: Annotated[str, 7] = ""
    hugepage_limits: Annotated[tuple[HugepageLimit, ...], 8] = ()
    unified: Annotated[dict[str, str], 9] = {}
    memory_swap_limit_in_bytes: Annotated[int, 10] = 0


class KeyValue(Message):
    key: Annotated[str, 1] = ""
    value: Annotated[bytes, 2] = b""
    """Bytes: an environment may hold what is no text."""


class Mount(Message):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    readonly: Annotated[bool, 3] = False


class Device(Message):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    permissions: Annotated[str, 3] = ""


class CDIDevice(Message):
    name: Annotated[str, 1] = ""
    """The full one, as vendor.com/gpu=0."""


class ContainerMetadata(Message):
    name: Annotated[str, 1] = ""


class LinuxContainerConfig(Message):
    resources: Annotated[LinuxContainerResources | None, 1] = None


class ContainerConfig(Message):
    metadata: Annotated[ContainerMetadata, 1] = field(default_factory=ContainerMetadata)
    envs: Annotated[tuple[KeyValue, ...], 6] = ()
    mounts: Annotated[tuple[Mount, ...], 7] = ()
    devices: Annotated[tuple[Device, ...], 8] = ()
    annotations: Annotated[dict[str, str], 10] = {}
    linux: Annotated[LinuxContainerConfig | None, 15] = None
    CDI_devices: Annotated[tuple[CDIDevice, ...], 17] = ()


class CreateContainerRequest(Message):
    pod_sandbox_id: Annotated[str, 1] = ""
    config: Annotated[ContainerConfig, 2] = field(default_factory=ContainerConfig)
    sandbox_config: Annotated[PodSandboxConfig, 3] = field(default_factory=PodSandboxConfig)


class CreateContainerResponse(Message):
    container_id: Annotated[str, 1] = ""


class ContainerFilter(Message):
    id: Annotated[str, 1] = ""


class ListContainersRequest(Message):
    filter: Annotated[ContainerFilter | None, 1] = None


class Container(Message):
    id: Annotated[str, 1] = ""
    pod_sandbox_id: Annotated[str, 2] = ""
    metadata: Annotated[ContainerMetadata, 3] = field(default_factory=ContainerMetadata)
    state: Annotated[ContainerState, 6] = ContainerState.CREATED


class ListContainersResponse(Message):
    containers: Annotated[tuple[Container, ...], 1] = ()


class ContainerStatusRequest(Message):
    container_id: Annotated[str, 1] = ""
    verbose: Annotated[bool, 2] = False


class ContainerResources(Message):
    linux: Annotated[LinuxContainerResources | None, 1] = None


class ContainerStatus(Message):
    state: Annotated[ContainerState, 3] = ContainerState.CREATED
    resources: Annotated[ContainerResources | None, 16] = None


class ContainerStatusResponse(Message):
    status: Annotated[ContainerStatus, 1] = field(default_factory=ContainerStatus)
    info: Annotated[dict[str, str], 2] = {}
    """If verbose: `info` is JSON whose form is the runtime's own."""


class UpdateContainerResourcesRequest(Message):
    container_id: Annotated[str, 1] = ""
    linux: Annotated[LinuxContainerResources | None, 2] = None


class UpdateContainerResourcesResponse(Message):
    pass


class StatusRequest(Message):
    verbose: Annotated[bool, 1] = False


class StatusResponse(Message):
    info: Annotated[dict[str, str], 2] = {}
    """If verbose: what the runtime tells of itself, as JSON whose form is its own."""


SERVICE = "runtime.v1.RuntimeService"
IMAGE_SERVICE = "runtime.v1.ImageService"

LIST_POD_SANDBOX = Method(SERVICE, "ListPodSandbox", ListPodSandboxRequest, ListPodSandboxResponse)
LIST_CONTAINERS = Method(SERVICE, "ListContainers", ListContainersRequest, ListContainersResponse)
CONTAINER_STATUS = Method(
    SERVICE, "ContainerStatus", ContainerStatusRequest, ContainerStatusResponse
)
UPDATE_CONTAINER_RESOURCES = Method(
    SERVICE,
    "UpdateContainerResources",
    UpdateContainerResourcesRequest,
    UpdateContainerResourcesResponse,
)

STATUS = Method(SERVICE, "Status", StatusRequest, StatusResponse)

UNARY = frozenset(
    f"/{service}/{name}"
    for service, names in {
        SERVICE: (
            "Version RunPodSandbox StopPodSandbox RemovePodSandbox PodSandboxStatus ListPodSandbox "
            "CreateContainer StartContainer StopContainer RemoveContainer ListContainers "
            "ContainerStatus UpdateContainerResources ReopenContainerLog ExecSync Exec Attach "
            "PortForward ContainerStats ListContainerStats PodSandboxStats ListPodSandboxStats "
            "UpdateRuntimeConfig Status CheckpointContainer ListMetricDescriptors "
            "ListPodSandboxMetrics RuntimeConfig UpdatePodSandboxResources"
        ),
        IMAGE_SERVICE: "ListImages ImageStatus PullImage RemoveImage ImageFsInfo",
    }.items()
    for name in names.split()
)
"""Paths of the methods known to have one question and one answer."""
