"""What all plugins keep of containers, and what their decisions start from, whatever the resource.

The `state` modules of cpu, memory and nic build on it: a state in, a request, a new state out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Self, TypedDict, TypeVar

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.neighbours import Neighbour, barred
from dovetail.node.plugins.common.requests import PluginRequest
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.topology import Machine


class ResourceHolding(msgspec.Struct, frozen=True, kw_only=True):
    """What a container has."""

    pod: str
    """Its uid."""
    namespace: str
    name: str
    container: str
    """Nothing: all of the pod's share it."""
    init: bool = False
    role: str
    """As the file of roles calls it; empty if none matched."""

    @property
    def key(self) -> tuple[str, str]:
        return self.pod, self.container

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def holder(self) -> str:
        """For messages: the container, or all of the pod."""
        part = f"container {self.container}" if self.container else "all containers"
        return f"{self.shown}, {part},"

    def is_for(self, request: PluginRequest) -> bool:
        """Whether it is the container's; of a request for a whole pod, whether it is the pod's."""
        return self.pod == request.pod and request.container in ("", self.container)


H = TypeVar("H", bound=ResourceHolding)


class HoldingOwner(TypedDict):
    """The fields of a holding that say whose it is."""

    pod: str
    namespace: str
    name: str
    container: str
    init: bool
    role: str


def owner_of(request: PluginRequest) -> HoldingOwner:
    """For a new holding: `CpuHolding(**owner_of(request), amount=...)`."""
    return HoldingOwner(
        pod=request.pod,
        namespace=request.namespace,
        name=request.name,
        container=request.container,
        init=request.init,
        role=request.role.name,
    )


class PluginState(msgspec.Struct, Generic[H], frozen=True, kw_only=True):
    """Immutable: a decision makes a new one."""

    holdings: tuple[H, ...] = ()
    """By pod and container."""

    def of(self, pod: str, container: str) -> H | None:
        return next((each for each in self.holdings if each.key == (pod, container)), None)

    def own(self, request: PluginRequest) -> tuple[H, ...]:
        """What the container has; of a request for a whole pod, what its containers have."""
        return tuple(each for each in self.holdings if each.is_for(request))

    def with_holding(self, new: H) -> Self:
        others = (each for each in self.holdings if each.key != new.key)
        ordered = sorted((*others, new), key=lambda each: each.key)
        return msgspec.structs.replace(self, holdings=tuple(ordered))

    def as_a_whole(self, pod: str) -> Self:
        """With what the pod holds, and nothing of containers of its by themselves."""
        left = tuple(each for each in self.holdings if each.pod != pod or not each.container)
        return msgspec.structs.replace(self, holdings=left)

    def without(self, pod: str) -> Self:
        left = tuple(each for each in self.holdings if each.pod != pod)
        return msgspec.structs.replace(self, holdings=left)


class ResourceDecisions:
    """What the decisions of every plugin start from: one machine, and one file of roles."""

    def __init__(self, machine: Machine, book: RoleBook, resource: str) -> None:
        self.machine, self.book, self.resource = machine, book, resource

    def barred_nodes(
        self, request: PluginRequest, held: Iterable[tuple[ResourceHolding, CpuSet]]
    ) -> dict[int, str]:
        """NUMA nodes that are not for this pod, and why; `held`: who has something on which."""
        neighbours = (
            Neighbour(pod=each.pod, shown=each.shown, role=each.role, nodes=nodes)
            for each, nodes in held
            if nodes
        )
        return barred(request.role, request.pod, neighbours, self.book.roles)
