"""Observed nodes: what a mirror or a posted snapshot saw of a node, and its document in the ledger.

Only what podfit reads is kept, and of pods what tells whose they are: a node's heartbeat, or a pod
that tells of its containers, changes no document. Fields that have their default value are left
out, so a pod takes a few hundred bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.device import Device
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL
from dovetail.podfit.objects import (
    Affinity,
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
)
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.pod_sum import ENDED_PHASES
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


def observed_pod(pod: Pod) -> SeenPod | None:
    """None: it takes no room on any node. Raises BadQuantity."""
    if not pod.spec.node_name or pod.status.phase in ENDED_PHASES:
        return None
    meta = pod.metadata
    labels = meta.labels
    return SeenPod(
        pod.key,
        meta.uid or pod.key,
        pod_request_of(pod).amounts,
        labels.get(DEPLOYMENT_LABEL, ""),
        labels.get(APP_LABEL, ""),
        msgspec.Raw(ENCODER.encode(compact(_pruned_pod(pod)))),
    )


def pruned_node(node: Node) -> Node:
    """What is kept of a node."""
    meta, spec, status = node.metadata, node.spec, node.status
    return Node(
        metadata=ObjectMeta(name=meta.name, uid=meta.uid, labels=meta.labels),
        spec=NodeSpec(taints=spec.taints, unschedulable=spec.unschedulable),
        status=NodeStatus(
            allocatable=status.allocatable,
            conditions=tuple(
                replace(each, message="", last_transition_time=None)
                for each in status.conditions
                if each.type == READY
            ),
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


def _pruned_pod(pod: Pod) -> Pod:
    """Resources as they count now, so that what the status says of them can go."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    containers, init_containers, resources = resources_in_use(pod)
    affinity = spec.affinity
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            # Snapshots may come without: pods of one cluster have to differ all the same.
            uid=meta.uid or pod.key,
            labels=meta.labels,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            containers=_pruned_containers(containers),
            init_containers=_pruned_containers(init_containers),
            node_name=spec.node_name,
            # On a node already, only what it demands of those that come counts.
            affinity=affinity
            and Affinity(
                pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity
            ),
            overhead=spec.overhead,
            resources=resources,
        ),
        status=PodStatus(
            phase=status.phase,
            conditions=tuple(
                replace(each, message="", last_transition_time=None)
                for each in status.conditions
                if each.type == READY and DEPLOYMENT_LABEL in meta.labels
            ),
        ),
    )


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
        return {
            written: compact(given)
            for name, written, default in _fields(type(value))
            if (given := getattr(value, name)) != default
        }
    if isinstance(value, tuple | list):
        return [compact(each) for each in value]
    return value
