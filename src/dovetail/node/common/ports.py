"""Ports of the agent (protocols): what its rooms ask of each other without importing each other.

The back ends, the control socket and the daemon see the manager through `ManagerPort` only; the
manager sees plugins, pods and the runtime through `PluginRegistry`, `PodSource` and `Runtime`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.core.explanation import Explanation
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.wire.resource_plugin import ResourcePluginOptions
from dovetail.wire.rpc import A, Method, Q, Served


class PluginFailure(StrEnum):
    """Why a plugin did not answer."""

    DOWN = "down"
    """There is nobody at its socket."""
    TIMEOUT = "timeout"
    REFUSED = "refused"
    """It answered with an error."""
    UNIMPLEMENTED = "unimplemented"
    """It does not know the method, which is no decision about the pod."""
    GARBAGE = "garbage"
    """It answered with something that is no answer, or to another question."""


class PluginError(DovetailError):
    def __init__(
        self, resource: str, failure: PluginFailure, words: str, *, reason: str = ""
    ) -> None:
        """`reason`: a stable token, where that of the failure would say too little."""
        super().__init__(words)
        self.resource, self.failure, self.reason = resource, failure, reason


class Plugin(Protocol):
    """A resource plugin that registered once; it may be gone at the moment."""

    @property
    def resource(self) -> str: ...

    @property
    def options(self) -> ResourcePluginOptions: ...

    @property
    def up(self) -> bool: ...

    @property
    def down_since(self) -> float | None:
        """On the monotonic clock; nothing while it is up."""
        ...

    async def call(self, method: Method[Q, A], question: Q) -> A:
        """Its answer, within the deadline of the method; raises PluginError."""
        ...


class Plugins(Protocol):
    def of(self, resource: str) -> Plugin | None: ...

    def all(self) -> Sequence[Plugin]:
        """By name of the resource."""
        ...


class PluginRegistry(Plugins, Protocol):
    """The plugins of a node, with what only their manager does."""

    def forget(self, resource: str) -> bool:
        """Of a plugin that was uninstalled; whether it was forgotten: not if it has a socket."""
        ...

    def statuses(self) -> Sequence[msgspec.Struct]: ...


class AdmissionRejected(DovetailError):
    """A pod or container that may not start."""

    def __init__(
        self,
        reason: str,
        words: str,
        *,
        later: bool = False,
        explanation: Explanation | None = None,
    ) -> None:
        """`reason`: a stable token; `later`: it may succeed without anything being freed."""
        super().__init__(words)
        self.reason, self.later, self.explanation = reason, later, explanation


class AdmissionPort(Protocol):
    """The half of the manager's port that a back end (CRI proxy, NRI) calls for the runtime."""

    async def admit_pod(self, sandbox: Sandbox) -> None:
        """Before a sandbox is made; raises AdmissionRejected, and then nothing is held."""
        ...

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        """Before a container is created: what it is given; raises AdmissionRejected.

        `asked`: what the runtime was told to give it, which tells of it where nobody else does.
        """
        ...

    def current_settings(self, uid: str, container: str) -> ContainerSettings:
        """What a container of the pod was given before, if anything; nobody is asked."""
        ...

    async def container_created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        """After that: what is applied to it now."""
        ...

    async def resize_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        """Before a container that runs is changed from outside: what it is given.

        Raises AdmissionRejected; then it has what it had.
        """
        ...

    async def container_resized(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        """After that. Who can't tell need not: the container is looked at before long."""
        ...

    async def resize_failed(self, sandbox: Sandbox, container: str) -> None:
        """The runtime did not do it: the container has what it had."""
        ...

    async def sandbox_gone(self, sandbox: Sandbox) -> None:
        """After a sandbox was removed: a reason to look soon whether its pod is."""
        ...


class ContainerPhase(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ObservedContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container as the runtime and the kernel show it."""

    id: str
    pod_uid: str
    container: str
    state: ContainerPhase
    applied: ContainerSettings
    """What can be read back; envs, annotations, mounts and devices are not."""


class Runtime(Protocol):
    """The container runtime, by whichever back end."""

    async def sandboxes(self) -> Sequence[Sandbox]: ...

    async def containers(self) -> Sequence[ObservedContainer]: ...

    async def update(self, id_: str, change: ContainerSettings) -> None:
        """Apply the fields that are not empty; raises RuntimeRefused."""
        ...


class Injector(Protocol):
    """What a back end can bring into containers besides resources of a cgroup."""

    async def why_not(self, settings: ContainerSettings) -> str | None:
        """Why a container would start without a part of these; None if it has them all."""
        ...


class RuntimeRefused(DovetailError):
    """The container runtime did not do it, or is not there."""


class PodSource(Protocol):
    """Who knows which pods there should be on this node."""

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        """The pod of a sandbox that is about to start; asks again for a moment if unknown."""
        ...

    async def active(self) -> Sequence[Pod] | None:
        """All pods that are not over; None if that is not known at the moment."""
        ...


class ManagerPort(AdmissionPort, Protocol):
    """The one way to all that the agent decides and knows: daemon and control socket use it."""

    def state(self) -> Mapping[str, Any]:
        """What pods hold, which plugins are to hear of pods that went, and what the node has."""
        ...

    def plugin_statuses(self) -> Sequence[msgspec.Struct]:
        """Of each socket, and of each resource whose plugin has none at the moment."""
        ...

    def explanation(self, pod: str) -> Mapping[str, Any] | None:
        """Of a pod by uid, namespace/name or name: what it holds, and why; None if unknown."""
        ...

    def pod_resources(self) -> Iterable[Served]:
        """The methods of the pod resources API."""
        ...

    def reconciling(self, runtime: Runtime) -> AbstractAsyncContextManager[None]:
        """Inside, containers of the runtime are kept as plugins want them, until it is left."""
        ...

    def attach(self, injector: Injector) -> None:
        """Before anybody is let in: what the back end can bring into containers."""
        ...

    async def stop(self) -> None:
        """Let admissions under way end, or be taken back."""
        ...
