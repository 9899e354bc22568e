"""Pod requests: what a pod requests of its node, read once for all pods of a template.

`NodeTable` counts pods by their pod requests, and filters and scores read those of the pod to be
placed. Requests of device classes are no part of a pod request.
"""

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
    PodSpec,
    PreferredSchedulingTerm,
    ResourceRequirements,
    SelectorRequirement,
    Toleration,
    TopologySpreadConstraint,
)
from dovetail.podfit.pod_sum import (
    CPU,
    MEMORY,
    NON_ZERO_DEFAULTS,
    amounts_of,
    is_sidecar,
    pod_requests,
    units,
)
from dovetail.podfit.resizing import resources_in_use
from dovetail.podfit.selectors import equal_to, is_readable
from dovetail.podfit.terms import (
    HostPort,
    InlineDisk,
    PodTerm,
    SelectablePod,
    TopologySpread,
    inline_disks_of,
    pod_term,
    topology_spread_of,
)

RESTART_ALL = "RestartAllContainers"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - how Kubernetes writes it; nothing listens here


class PodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides on which nodes a pod fits and which it prefers."""

    namespace: str
    labels: dict[str, str]
    selectable: SelectablePod
    """The pod as the terms of others see it."""
    amounts: tuple[tuple[str, int], ...]
    """Units of each resource, a place for a pod included."""
    score_amounts: tuple[tuple[str, int], ...]
    """CPU and memory as scores count them: with something for containers that ask for nothing."""
    tolerations: tuple[Toleration, ...] = ()
    node_labels: tuple[SelectorRequirement, ...] = ()
    """The nodeSelector."""
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    """Required node affinity: the node has to meet one of the terms. None: there is none."""
    preferred_nodes: tuple[PreferredSchedulingTerm, ...] = ()
    ports: tuple[HostPort, ...] = ()
    pod_affinity: tuple[PodTerm, ...] = ()
    """Required, as `pod_anti_affinity` is."""
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[PodTerm, int], ...] = ()
    """Preferred affinity with its weights; of anti-affinity, they are below zero."""
    spread: tuple[TopologySpread, ...] = ()
    """Constraints that must hold; those of `soft_spread` may be broken."""
    soft_spread: tuple[TopologySpread, ...] = ()
    disks: tuple[InlineDisk, ...] = ()
    features: tuple[str, ...] = ()
    """That the node has to declare: it would not run the pod as it is meant."""


class RequestFields(msgspec.Struct, array_like=True):
    """The parts of a pod that its request depends on: equal in all pods of a template.

    Of volumes there are the inline disks alone: volumes have names of their own in each pod, and
    pods that need any special ones are refused (`unsupported_reason`).
    """

    namespace: str
    labels: dict[str, str]
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...]
    resources: ResourceRequirements | None
    overhead: dict[str, str | int | float]
    node_selector: dict[str, str]
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]
    spread: tuple[TopologySpreadConstraint, ...]
    disks: tuple[InlineDisk, ...]
    features: tuple[str, ...]


KEPT = "request"
FIELDS_ENCODER = msgspec.msgpack.Encoder()
FIELDS_DECODER = msgspec.msgpack.Decoder(RequestFields)


def pod_request_of(pod: Pod) -> PodRequest:
    """The same object for all pods of a template, wherever they are. Raises BadQuantity.

    Kept on the pod, which never changes: planners ask again and again.
    """
    kept: PodRequest | None = pod.__dict__.get(KEPT)
    if kept is None:
        kept = pod.__dict__[KEPT] = read_request(pod)
    return kept


def read_request(pod: Pod) -> PodRequest:
    meta, spec = pod.metadata, pod.spec
    containers, init_containers, resources = resources_in_use(pod)
    return request_from(
        FIELDS_ENCODER.encode(
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
                sorted(inline_disks_of(spec.volumes)),
                features_of(spec),
            )
        )
    )


@lru_cache(maxsize=8192)
def request_from(content: bytes) -> PodRequest:
    """From the encoded parts, which make a key that is quick to compare and cannot be stale."""
    pod = FIELDS_DECODER.decode(content)
    affinity = pod.affinity or Affinity()
    nodes = affinity.node_affinity or NodeAffinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAffinity()
    parts = (pod.containers, pod.init_containers, pod.resources, pod.overhead)
    scored = pod_requests(*parts, defaults=NON_ZERO_DEFAULTS)
    return PodRequest(
        namespace=pod.namespace,
        labels=pod.labels,
        selectable=SelectablePod(pod.namespace, tuple(sorted(pod.labels.items()))),
        amounts=amounts_of(pod_requests(*parts)),
        score_amounts=tuple((name, units(name, scored[name])) for name in (CPU, MEMORY)),
        tolerations=pod.tolerations,
        node_labels=equal_to(pod.node_selector),
        node_terms=node_terms(nodes),
        preferred_nodes=tuple(like for like in nodes.preferred if is_satisfiable(like.preference)),
        ports=tuple(host_ports(pod)),
        pod_affinity=tuple(pod_term(term, pod.namespace, pod.labels) for term in near.required),
        pod_anti_affinity=tuple(
            pod_term(term, pod.namespace, pod.labels) for term in apart.required
        ),
        preferred_pods=(*preferred_pods(near, pod, 1), *preferred_pods(apart, pod, -1)),
        spread=topology_spreads(pod, "DoNotSchedule"),
        soft_spread=topology_spreads(pod, "ScheduleAnyway"),
        disks=pod.disks,
        features=pod.features,
    )


def node_terms(nodes: NodeAffinity) -> tuple[NodeSelectorTerm, ...] | None:
    if nodes.required is None:
        return None
    return tuple(term for term in nodes.required.node_selector_terms if is_satisfiable(term))


def is_satisfiable(term: NodeSelectorTerm) -> bool:
    """Empty terms, and terms that make no sense, are met by no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(map(is_readable, term.match_expressions)) and all(
        field.operator in ("In", "NotIn") and len(field.values) == 1 for field in term.match_fields
    )


def host_ports(pod: RequestFields) -> Iterator[HostPort]:
    """Of containers that stay: init containers are gone when others come."""
    sidecars = filter(is_sidecar, pod.init_containers)
    for container in (*sidecars, *pod.containers):
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.protocol, port.host_port, port.host_ip or ANY_ADDRESS)


def features_of(spec: PodSpec) -> tuple[str, ...]:
    """What Kubernetes 1.36 wants a node to declare (KEP-5328) that shall run such a pod.

    Others of its features are about updates of pods, which are none of a scheduler's business.
    """
    found = []
    containers = (*spec.init_containers, *spec.containers)
    if any(rule.action == RESTART_ALL for each in containers for rule in each.restart_policy_rules):
        found.append("RestartAllContainersOnContainerExits")
    if spec.host_network and not spec.host_users:
        found.append("UserNamespacesHostNetworkSupport")
    return tuple(found)


def preferred_pods(
    terms: PodAffinity, pod: RequestFields, sign: int
) -> Iterator[tuple[PodTerm, int]]:
    for weighted in terms.preferred:
        term = pod_term(weighted.pod_affinity_term, pod.namespace, pod.labels)
        yield term, sign * weighted.weight


def topology_spreads(pod: RequestFields, when: str) -> tuple[TopologySpread, ...]:
    chosen = (one for one in pod.spread if one.when_unsatisfiable == when)
    return tuple(topology_spread_of(one, pod.labels) for one in chosen)


def unsupported_reason(pod: Pod) -> str | None:
    """What of the pod is not handled, in words for its event; None: everything is.

    A volume can tie a pod to some nodes, and a claim to devices. Both need the state of further
    objects, and a volume may have to be made in step with the choice of the node.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name
            return (
                f"volume {volume.name!r} uses PersistentVolumeClaim {claim!r}: this scheduler does"
                " not place pods with persistent volumes"
            )
        if volume.ephemeral is not None:
            return (
                f"volume {volume.name!r} is a generic ephemeral volume: this scheduler does not"
                " place pods with persistent volumes"
            )
    for claimed in pod.spec.resource_claims:
        return (
            f"resource claim {claimed.get('name', '')!r}: this scheduler does not allocate"
            " ResourceClaims; ask for a resource class instead"
        )
    return None
