"""Observed nodes: what a mirror or a posted snapshot saw of a node, and its document in the ledger.

Only what podfit reads is kept, and of pods what tells whose they are: a node's heartbeat, or a pod
that tells of its containers, changes no document. Fields that have their default value are left
out, so a pod takes a few hundred bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.device import Device
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL
from dovetail.podfit.objects import (
    Affinity,
    Condition,
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from dovetail.podfit.pod_sum import ENDED_PHASES, amounts_of, pod_requests
from dovetail.podfit.resizing import resources_in_use

READY = "Ready"
ENCODER = msgspec.json.Encoder(order="deterministic")


class SeenPod(msgspec.Struct, frozen=True):
    """A pod that is on a node and has not ended."""

    key: str
    uid: str
    amounts: tuple[tuple[str, int], ...]
    """By resource, in podfit's units."""
    deployment: str
    app: str
    """Of which it is, by its labels; empty: not of ours."""
    document: msgspec.Raw


class DeviceUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Units of a device that a pod was seen to have."""

    device: str
    pod: str
    """Its uid; empty: nobody knows which."""
    units: int = 1


class SeenNode(msgspec.Struct, frozen=True, kw_only=True):
    node: Node
    pods: tuple[SeenPod, ...] = ()
    devices: tuple[Device, ...] = ()
    devices_by_claim: bool = False
    """They come from ResourceSlices, and are handed out by ResourceClaims."""
    uses: tuple[DeviceUse, ...] = ()
    pins_cpus: bool | None = None

    @property
    def name(self) -> str:
        return self.node.metadata.name


class NodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The node itself, as it is read from the ledger."""

    node: Node
    devices: tuple[Device, ...] = ()
    devices_by_claim: bool = False
    pins_cpus: bool | None = None


class PodsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on it, likewise; apart from the node, for it changes far more often."""

    pods: tuple[Pod, ...] = ()
    uses: tuple[DeviceUse, ...] = ()


class WrittenPods(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """As they are written: each was encoded when it was seen."""

    pods: tuple[msgspec.Raw, ...] = ()
    uses: tuple[DeviceUse, ...] = ()


NODE_DECODER = msgspec.json.Decoder(NodeDocument)
PODS_DECODER = msgspec.json.Decoder(PodsDocument)


class TemplateFields(msgspec.Struct, array_like=True):
    """What of a pod is equal in all pods of a template, as far as it counts on a node."""

    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...]
    resources: ResourceRequirements | None
    overhead: dict[str, str | int | float]
    affinity: Affinity | None


class PodTemplate(msgspec.Struct, frozen=True):
    """What pods of a template have in common: one for all of them."""

    spec: PodSpec
    amounts: tuple[tuple[str, int], ...]
    document: dict[str, Any]


TEMPLATE_ENCODER = msgspec.msgpack.Encoder()
TEMPLATE_DECODER = msgspec.msgpack.Decoder(TemplateFields)


def pruned_pod(pod: Pod, annotations: Collection[str] = ()) -> Pod:
    """What is kept of a pod, with these of its annotations. Parts that pods of a template have in
    common are the same objects in all of them. Raises BadQuantity."""
    meta, status = pod.metadata, pod.status
    notes = {key: meta.annotations[key] for key in annotations if key in meta.annotations}
    is_ours = DEPLOYMENT_LABEL in meta.labels
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            # Snapshots may come without: pods of one cluster have to differ all the same.
            uid=meta.uid or pod.key,
            labels=_shared(tuple(meta.labels.items())),
            annotations=notes,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=replace(template_of(pod).spec, node_name=pod.spec.node_name),
        status=PodStatus(
            phase=status.phase, conditions=_readiness(status.conditions) if is_ours else ()
        ),
    )


def observed_pod(pod: Pod) -> SeenPod | None:
    """None: it takes no room on any node. Raises BadQuantity."""
    if not pod.spec.node_name or pod.status.phase in ENDED_PHASES:
        return None
    meta, labels = pod.metadata, pod.metadata.labels
    uid = meta.uid or pod.key
    template = template_of(pod)
    document: dict[str, dict[str, Any]] = {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": uid, "labels": labels},
        "spec": {**template.document, "nodeName": pod.spec.node_name},
        "status": {"phase": pod.status.phase},
    }
    if meta.deletion_timestamp is not None:
        document["metadata"]["deletionTimestamp"] = meta.deletion_timestamp
    deployment = labels.get(DEPLOYMENT_LABEL, "")
    if deployment:
        document["status"]["conditions"] = compact(_readiness(pod.status.conditions))
    text = msgspec.Raw(ENCODER.encode(document))
    return SeenPod(pod.key, uid, template.amounts, deployment, labels.get(APP_LABEL, ""), text)


def template_of(pod: Pod) -> PodTemplate:
    """Resources are as they count now, so that what the status says of them is not needed."""
    spec = pod.spec
    return _read_template(
        TEMPLATE_ENCODER.encode((*resources_in_use(pod), spec.overhead, spec.affinity))
    )


@lru_cache(maxsize=8192)
def _read_template(content: bytes) -> PodTemplate:
    """From the encoded parts, which make a key that is quick to compare and cannot be stale."""
    pod = TEMPLATE_DECODER.decode(content)
    affinity = pod.affinity
    spec = PodSpec(
        containers=_pruned_containers(pod.containers),
        init_containers=_pruned_containers(pod.init_containers),
        # On a node already, only what it demands of those that come counts.
        affinity=affinity
        and Affinity(
            pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity
        ),
        overhead=pod.overhead,
        resources=pod.resources,
    )
    requests = pod_requests(pod.containers, pod.init_containers, pod.resources, pod.overhead)
    return PodTemplate(spec, amounts_of(requests), compact(spec))


@lru_cache(maxsize=8192)
def _shared(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(labels)


def _readiness(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    return tuple(
        replace(each, message="", last_transition_time=None)
        for each in conditions
        if each.type == READY
    )


def pruned_node(node: Node) -> Node:
    """What is kept of a node."""
    meta, spec, status = node.metadata, node.spec, node.status
    return Node(
        metadata=ObjectMeta(name=meta.name, uid=meta.uid, labels=meta.labels),
        spec=NodeSpec(taints=spec.taints, unschedulable=spec.unschedulable),
        status=NodeStatus(
            allocatable=status.allocatable,
            conditions=_readiness(status.conditions),
            declared_features=status.declared_features,
        ),
    )


def node_document(observed: SeenNode) -> str:
    """Equal for equal nodes."""
    document = NodeDocument(
        node=observed.node,
        devices=observed.devices,
        devices_by_claim=observed.devices_by_claim,
        pins_cpus=observed.pins_cpus,
    )
    return ENCODER.encode(compact(document)).decode()


def pods_document(observed: SeenNode) -> str:
    """Equal for equal pods, in whatever order they came."""
    written = WrittenPods(
        pods=tuple(each.document for each in sorted(observed.pods, key=lambda each: each.key)),
        uses=tuple(sorted(observed.uses, key=lambda each: (each.device, each.pod))),
    )
    return ENCODER.encode(written).decode()


def _pruned_containers(containers: Iterable[Container]) -> tuple[Container, ...]:
    return tuple(
        replace(each, image="", ports=tuple(port for port in each.ports if port.host_port))
        for each in containers
    )


@lru_cache(maxsize=256)
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Name, name as it is written, and default."""
    return tuple(
        (each.name, each.encode_name, each.default_factory())
        if each.default_factory is not msgspec.NODEFAULT
        else (each.name, each.encode_name, each.default)
        for each in msgspec.structs.fields(kind)
    )


def compact(value: Any) -> Any:
    """Structs as dictionaries, less what is as by default; so reading gives the same again."""
    if isinstance(value, msgspec.Struct):
        kind = value.__struct_config__
        return {
            **({kind.tag_field: kind.tag} if kind.tag_field is not None else {}),
            **{
                written: compact(given)
                for name, written, default in _fields(type(value))
                if (given := getattr(value, name)) != default
            },
        }
    if isinstance(value, tuple | list):
        return [compact(each) for each in value]
    return value
