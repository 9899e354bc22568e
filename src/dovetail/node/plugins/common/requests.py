"""What a container asks a plugin for, made of the message."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import from_wire
from dovetail.node.plugins.common.roles import Book, Described, Role
from dovetail.node.wire.resource_plugin import ContainerType, PodResourceRequest, ResourceRequest


class BadAsk(DovetailError):
    """A question that has no answer."""


class Impossible(DovetailError):
    """What is asked for cannot be given now; the words say why."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    pod: str
    namespace: str
    name: str
    container: str
    """Empty: the pod as a whole."""
    init: bool = False
    """It is over before the others start, so what it had can be theirs."""
    role: Role
    amounts: Mapping[str, Fraction] = {}
    """By resource, limits as "limits/cpu"; only what is more than nothing."""
    nodes: CpuSet | None = None
    """Where the agent wants it; nothing if anywhere will do."""
    preferred: bool = True
    """Not, if these nodes are only the best there are: then others will do if they must."""

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"


def ask(book: Book, request: ResourceRequest, nodes: CpuSet) -> Ask:
    """`nodes` are those of the machine."""
    if not request.pod_uid or not request.container_name:
        raise BadAsk("a request needs pod_uid and container_name")
    return Ask(
        pod=request.pod_uid,
        namespace=request.pod_namespace,
        name=request.pod_name,
        container=request.container_name,
        init=request.container_type == ContainerType.INIT,
        role=book.role(_described(request, request.native_qos_class)),
        amounts=_amounts(request.resource_requests),
        nodes=_nodes(request, nodes),
        preferred=request.hint is None or request.hint.preferred,
    )


def ask_of_pod(book: Book, request: PodResourceRequest, nodes: CpuSet) -> Ask:
    if not request.pod_uid:
        raise BadAsk("a request needs pod_uid")
    return Ask(
        pod=request.pod_uid,
        namespace=request.pod_namespace,
        name=request.pod_name,
        container="",
        role=book.role(_described(request, "")),
        amounts=_amounts(request.resource_requests),
        nodes=_nodes(request, nodes),
        preferred=request.hint is None or request.hint.preferred,
    )


def _described(request: ResourceRequest | PodResourceRequest, qos_class: str) -> Described:
    return Described(
        role=request.pod_role,
        type=request.pod_type,
        qos_class=qos_class,
        namespace=request.pod_namespace,
        labels=request.labels,
        annotations=request.annotations,
    )


def _amounts(requests: Mapping[str, float]) -> dict[str, Fraction]:
    """Exact: they are multiples of a thousandth, whatever a double makes of that."""
    found = {}
    for name, amount in sorted(requests.items()):
        if not isfinite(amount) or amount < 0:
            raise BadAsk(f"{amount} of {name} is no amount")
        if amount:
            found[name] = Fraction(round(Fraction(amount) * 1000), 1000)
    return found


def _nodes(request: ResourceRequest | PodResourceRequest, nodes: CpuSet) -> CpuSet | None:
    return from_wire(request.hint, nodes).nodes if request.hint else None
