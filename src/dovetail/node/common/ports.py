"""Where the parts of the agent meet: what each asks of the others."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.core.explanation import Explanation
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.wire.resource_plugin import ResourcePluginOptions
from dovetail.node.wire.rpc import A, Method, Q


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
    def __init__(self, resource: str, failure: PluginFailure, words: str) -> None:
        super().__init__(words)
        self.resource, self.failure = resource, failure


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


class Gate(Protocol):
    """What a back end asks before it lets the runtime start something."""

    async def admit(self, sandbox: Sandbox) -> None:
        """Before a sandbox is made; raises AdmissionRejected, and then nothing is held."""
        ...

    async def settings(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        """Before a container is created: what it is given; raises AdmissionRejected.

        `asked`: what the runtime was told to give it, which tells of it where nobody else does.
        """
        ...

    def held(self, uid: str, container: str) -> ContainerSettings:
        """What a container of the pod was given before, if anything; nobody is asked."""
        ...

    async def created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        """After that: what is applied to it now."""
        ...

    async def gone(self, sandbox: Sandbox) -> None:
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
