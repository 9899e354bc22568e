"""A plugin's request: a container or pod, its role and amounts, checked and made of the message."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import from_wire
from dovetail.node.plugins.common.roles import PodDescription, PodRole, RoleBook
from dovetail.node.sdk.plugin import amounts_of
from dovetail.node.wire.resource_plugin import (
    ChosenDevice,
    ContainerType,
    PodResourceRequest,
    ResourceRequest,
)


class BadPluginRequest(DovetailError):
    """A question that has no answer."""


class QosClassUntold(DovetailError):
    """A question about a whole pod whose role depends on a QoS class that the agent does not tell.

    The agent is to ask by container, where it does.
    """


class Impossible(DovetailError):
    """What is asked for cannot be given now; the words say why."""


class PluginRequest(msgspec.Struct, frozen=True, kw_only=True):
    pod: str
    namespace: str
    name: str
    container: str
    """Empty: the pod as a whole."""
    pod_level: bool = False
    """The pod itself asks for it, not its containers together."""
    init: bool = False
    """It is over before the others start, so what it had can be theirs."""
    role: PodRole
    amounts: Mapping[str, Fraction] = {}
    """By resource, as the plugin calls it; only what is more than nothing."""
    nodes: CpuSet | None = None
    """Where the agent wants it; nothing if anywhere will do."""
    preferred: bool = True
    """Not, if these nodes are only the best there are: then others will do if they must."""
    chosen: tuple[ChosenDevice, ...] = ()
    """Devices that a resource class gave to the pod: these, or none."""

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"


def container_request(book: RoleBook, request: ResourceRequest, nodes: CpuSet) -> PluginRequest:
    """`nodes` are those of the machine."""
    if not request.pod_uid or not request.container_name:
        raise BadPluginRequest("a request needs pod_uid and container_name")
    return PluginRequest(
        pod=request.pod_uid,
        namespace=request.pod_namespace,
        name=request.pod_name,
        container=request.container_name,
        init=request.container_type == ContainerType.INIT,
        role=book.role(_described(request, request.native_qos_class)),
        amounts=_amounts(request),
        nodes=_nodes(request, nodes),
        preferred=request.hint is None or request.hint.preferred,
        chosen=request.chosen_devices,
    )


def pod_request(book: RoleBook, request: PodResourceRequest, nodes: CpuSet) -> PluginRequest:
    if not request.pod_uid:
        raise BadPluginRequest("a request needs pod_uid")
    described = _described(request, request.native_qos_class)
    if book.depends_on_qos_class(described):
        raise QosClassUntold("which role the pod has depends on its QoS class, which is not told")
    return PluginRequest(
        pod=request.pod_uid,
        namespace=request.pod_namespace,
        name=request.pod_name,
        container="",
        pod_level=request.pod_level,
        role=book.role(described),
        amounts=_amounts(request),
        nodes=_nodes(request, nodes),
        preferred=request.hint is None or request.hint.preferred,
        chosen=request.chosen_devices,
    )


def _described(request: ResourceRequest | PodResourceRequest, qos_class: str) -> PodDescription:
    return PodDescription(
        role=request.pod_role,
        type=request.pod_type,
        qos_class=qos_class,
        namespace=request.pod_namespace,
        labels=request.labels,
        annotations=request.annotations,
    )


def _amounts(request: ResourceRequest | PodResourceRequest) -> dict[str, Fraction]:
    """Exact: they are multiples of a thousandth, whatever a double makes of that."""
    found = {}
    for name, amount in sorted(amounts_of(request).items()):
        if not isfinite(amount) or amount < 0:
            raise BadPluginRequest(f"{amount} of {name} is no amount")
        if amount:
            found[name] = Fraction(round(Fraction(amount) * 1000), 1000)
    return found


def _nodes(request: ResourceRequest | PodResourceRequest, nodes: CpuSet) -> CpuSet | None:
    return from_wire(request.hint, nodes).nodes if request.hint else None
