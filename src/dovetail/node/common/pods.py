"""Pods, containers and sandboxes as every room of the agent sees them, whatever the source."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from dovetail.node.wire.resource_plugin import ContainerType

Amounts = Mapping[str, Fraction]
"""By resource: CPUs, bytes, or pieces."""


class DeviceChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that the scheduler gave to a pod, for a container to use."""

    resource: str
    id: str = ""
    """Empty if it is any one of a pool: then the agent chooses."""
    units: int = 1
    place: str = ""
    """Of one that is open: what the pod's containers that share it have in common."""

    @property
    def key(self) -> str:
        return self.id or self.place


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: ContainerType
    index: int
    """Its place in the list that it is in: of init, ordinary or ephemeral containers."""
    restartable: bool = False
    """An init container that stays: a sidecar in the words of Kubernetes."""
    requests: Amounts = {}
    limits: Amounts = {}
    chosen: Mapping[str, tuple[DeviceChoice, ...]] = {}
    """By resource of `requests`: the devices that are meant, and no others."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    qos_class: str = "BestEffort"
    """Guaranteed, Burstable or BestEffort."""
    runtime_class: str = ""
    owner_kind: str = ""
    """What made it, such as DaemonSet."""
    containers: tuple[ContainerSpec, ...] = ()
    """In the order in which they start: init containers, then the others, then ephemeral ones."""
    requests: Amounts = {}
    """Of the pod as a whole, if it says so; else nothing."""
    limits: Amounts = {}


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime knows of a pod when it starts."""

    uid: str
    namespace: str
    name: str
    id: str = ""
    """The runtime's; empty as long as it has none."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    runtime_class: str = ""
    creating: ContainerSpec | None = None
    """The container that is about to be created, as far as the runtime is told of it."""
    qos_class: str = ""
    """By the same; nothing as long as no container comes."""
