"""Pod templates: from one as a chart has it to the pod that the API server would make of it.

`workloads` calls it for packing. Objects in a chart have not been through admission: fields may be
null, and requests that follow from limits are not written out. Here the defaults that decide where
a pod fits are filled in as the API server does (`SetDefaults_Pod` and its parts).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.quantity import BadQuantity, format  # noqa: A004
from dovetail.intents.manifests.errors import BadManifest
from dovetail.podfit.objects import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    ResourceRequirements,
    SelectorRequirement,
    Toleration,
)
from dovetail.podfit.pod_sum import (
    HUGE_PAGES,
    WrittenQuantities,
    is_pod_level,
    pod_requests,
    quantity_of,
)

RawTemplate = Mapping[str, Any]
"""`metadata` and `spec` of pods to be made, as they were written."""

PER_NODE_TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""What the DaemonSet controller adds to its pods, and so where they go that others cannot."""
HOST_NETWORK_TOLERATION = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


def without_nulls(value: Any) -> Any:
    """The API server takes null for a field that is not there."""
    if isinstance(value, Mapping):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(each) for each in value]
    return value


def pod_of(
    template: RawTemplate, *, where: str, name: str, namespace: str, per_node: bool = False
) -> Pod:
    """Raises BadManifest, which says `where` (the object) and the field."""
    meta = without_nulls(template.get("metadata") or {})
    written = {
        "metadata": {**meta, "name": name, "namespace": namespace},
        "spec": without_nulls(template.get("spec") or {}),
    }
    try:
        pod = msgspec.convert(written, Pod)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise BadManifest(where, path.strip("`").removeprefix("$."), message) from error
    if not pod.spec.containers:
        raise BadManifest(where, "spec.containers", "a pod has at least one container")
    spec = _with_defaults(pod.spec)
    _check_quantities(spec, where)
    if spec.node_name:
        spec = _tied_to(spec, spec.node_name)
    if per_node:
        spec = replace(spec, tolerations=(*spec.tolerations, *_per_node_tolerations(spec)))
    return replace(pod, spec=spec)


def _per_node_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    return (*PER_NODE_TOLERATIONS, *([HOST_NETWORK_TOLERATION] if spec.host_network else []))


def _tied_to(spec: PodSpec, node: str) -> PodSpec:
    """A chart that names a node leaves nothing to schedulers: for packing, that is a condition
    among the others, which the kubelet still checks."""
    named = SelectorRequirement(key="metadata.name", operator="In", values=(node,))
    affinity = spec.affinity or Affinity()
    nodes = affinity.node_affinity or NodeAffinity()
    there = nodes.required.node_selector_terms if nodes.required else ()
    terms = tuple(
        replace(each, match_fields=(*each.match_fields, named))
        for each in there
        if each.match_expressions or each.match_fields
    )
    alone = (NodeSelectorTerm(match_fields=(named,)),)
    required = NodeSelector(node_selector_terms=terms if there else alone)
    affinity = replace(affinity, node_affinity=replace(nodes, required=required))
    return replace(spec, node_name="", affinity=affinity)


def _with_defaults(spec: PodSpec) -> PodSpec:
    containers, init_containers = (
        tuple(_container_with_defaults(each, spec) for each in group)
        for group in (spec.containers, spec.init_containers)
    )
    resources = spec.resources
    if resources is not None:
        requests = _pod_level_requests(resources, containers, init_containers)
        resources = replace(resources, requests=requests)
    return replace(
        spec, containers=containers, init_containers=init_containers, resources=resources
    )


def _pod_level_requests(
    whole: ResourceRequirements,
    containers: Sequence[Container],
    init_containers: Sequence[Container],
) -> dict[str, str | int | float]:
    """What a pod does not say as a whole is what its containers request; where they request
    nothing, its limits. Huge pages cannot be overcommitted: their limits come first."""
    try:
        summed = pod_requests(containers, init_containers, None, {})
    except BadQuantity:
        return whole.requests  # Told with its field by whoever checks all quantities.
    found = {name: format(each) for name, each in summed.items() if is_pod_level(name)}
    for name, limit in whole.limits.items():
        if name not in found or name.startswith(HUGE_PAGES):
            found[name] = str(limit)
    return {**found, **whole.requests}


def _container_with_defaults(container: Container, spec: PodSpec) -> Container:
    """Limits stand for requests that are left out; a pod on the host's network uses its ports."""
    resources, ports = container.resources, container.ports
    if resources.limits:
        resources = ResourceRequirements(
            requests={**resources.limits, **resources.requests}, limits=resources.limits
        )
    if spec.host_network:
        ports = tuple(map(_on_host, ports))
    return replace(container, resources=resources, ports=ports)


def _on_host(port: ContainerPort) -> ContainerPort:
    return port if port.host_port else replace(port, host_port=port.container_port)


def _check_quantities(spec: PodSpec, where: str) -> None:
    for path, written in _all_quantities(spec):
        for name, text in written.items():
            try:
                amount = quantity_of(str(text))
            except BadQuantity as error:
                raise BadManifest(where, f"{path}[{name}]", str(error)) from error
            if amount < 0:
                raise BadManifest(where, f"{path}[{name}]", f"{text} is less than nothing")


def _all_quantities(spec: PodSpec) -> Iterator[tuple[str, WrittenQuantities]]:
    owners = [
        *((f"spec.containers[{each.name}]", each.resources) for each in spec.containers),
        *((f"spec.initContainers[{each.name}]", each.resources) for each in spec.init_containers),
        ("spec", spec.resources or ResourceRequirements()),
    ]
    for path, resources in owners:
        yield f"{path}.resources.requests", resources.requests
        yield f"{path}.resources.limits", resources.limits
    yield "spec.overhead", spec.overhead
