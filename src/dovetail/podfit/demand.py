"""What a pod demands of the node it goes to, read once for all pods of a template."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from dovetail.podfit.objects import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PreferredNodes,
    Resources,
    SpreadConstraint,
    Term,
    Toleration,
)
from dovetail.podfit.pods import CPU, MEMORY, TYPICAL, amounts, pod_requests, units
from dovetail.podfit.resizing import in_use
from dovetail.podfit.selectors import equal_to, readable
from dovetail.podfit.terms import PodKind, PodTerm, Port, Spread, pod_term, spread_of

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - how Kubernetes writes it; nothing listens here


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    labels: dict[str, str]
    kind: PodKind
    amounts: tuple[tuple[str, int], ...]
    """Of each resource; requests of resource classes are not among them."""
    weight: tuple[tuple[str, int], ...]
    """CPU and memory as scores count them: with something for containers that ask for nothing."""
    tolerations: tuple[Toleration, ...] = ()
    node_labels: tuple[Term, ...] = ()
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    """The node has to meet one of them. None: there is no such demand."""
    node_likes: tuple[PreferredNodes, ...] = ()
    ports: tuple[Port, ...] = ()
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    likes: tuple[tuple[PodTerm, int], ...] = ()
    """With their weights: below nothing for pods that had better be elsewhere."""
    spread: tuple[Spread, ...] = ()
    soft_spread: tuple[Spread, ...] = ()


class Asked(msgspec.Struct, array_like=True):
    """The parts of a pod that matter here. Volumes are not among them: they have names of their own
    in each pod, and pods that need any special ones are refused (`limits.py`)."""

    namespace: str
    labels: dict[str, str]
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...]
    resources: Resources | None
    overhead: dict[str, str | int | float]
    node_selector: dict[str, str]
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]
    spread: tuple[SpreadConstraint, ...]


ENCODER = msgspec.msgpack.Encoder()
DECODER = msgspec.msgpack.Decoder(Asked)


def demand_of(pod: Pod) -> Demand:
    """Where the pod is already plays no part. Raises BadQuantity."""
    meta, spec = pod.metadata, pod.spec
    containers, init_containers, resources = in_use(pod)
    return read(
        ENCODER.encode(
            (
                meta.namespace,
                meta.labels,
                containers,
                init_containers,
                resources,
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
            )
        )
    )


@lru_cache(maxsize=8192)
def read(content: bytes) -> Demand:
    """From the encoded parts, which make a key that is quick to compare and cannot be stale."""
    pod = DECODER.decode(content)
    affinity = pod.affinity or Affinity()
    nodes = affinity.node_affinity or NodeAffinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAffinity()
    needs = (pod.containers, pod.init_containers, pod.resources, pod.overhead)
    typical = pod_requests(*needs, unsaid=TYPICAL)
    return Demand(
        namespace=pod.namespace,
        labels=pod.labels,
        kind=PodKind(pod.namespace, tuple(sorted(pod.labels.items()))),
        amounts=amounts(pod_requests(*needs)),
        weight=tuple((name, units(name, typical[name])) for name in (CPU, MEMORY)),
        tolerations=pod.tolerations,
        node_labels=equal_to(pod.node_selector),
        node_terms=node_terms(nodes),
        node_likes=tuple(like for like in nodes.preferred if sensible(like.preference)),
        ports=tuple(host_ports(pod)),
        near=tuple(pod_term(term, pod.namespace, pod.labels) for term in near.required),
        apart=tuple(pod_term(term, pod.namespace, pod.labels) for term in apart.required),
        likes=(*likes(near, pod, 1), *likes(apart, pod, -1)),
        spread=spreads(pod, "DoNotSchedule"),
        soft_spread=spreads(pod, "ScheduleAnyway"),
    )


def node_terms(nodes: NodeAffinity) -> tuple[NodeSelectorTerm, ...] | None:
    if nodes.required is None:
        return None
    return tuple(term for term in nodes.required.node_selector_terms if sensible(term))


def sensible(term: NodeSelectorTerm) -> bool:
    """Empty terms, and terms that make no sense, are met by no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(map(readable, term.match_expressions)) and all(
        field.operator in ("In", "NotIn") and len(field.values) == 1 for field in term.match_fields
    )


def host_ports(pod: Asked) -> Iterator[Port]:
    """Of containers that stay: init containers are gone when others come."""
    sidecars = (one for one in pod.init_containers if one.restart_policy == "Always")
    for container in (*sidecars, *pod.containers):
        for port in container.ports:
            if port.host_port > 0:
                yield Port(port.protocol, port.host_port, port.host_ip or ANY_ADDRESS)


def likes(terms: PodAffinity, pod: Asked, sign: int) -> Iterator[tuple[PodTerm, int]]:
    for weighted in terms.preferred:
        term = pod_term(weighted.pod_affinity_term, pod.namespace, pod.labels)
        yield term, sign * weighted.weight


def spreads(pod: Asked, when: str) -> tuple[Spread, ...]:
    wanted = (one for one in pod.spread if one.when_unsatisfiable == when)
    return tuple(spread_of(one, pod.labels) for one in wanted)
