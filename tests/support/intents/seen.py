"""Nodes and pods as a mirror sees them, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dovetail.core.device import Device
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL
from dovetail.ledger.intents.observed import DeviceUse, SeenNode, observed_pod, pruned_node
from dovetail.podfit.objects import Node, Pod


def node(
    name: str,
    *,
    cpu: str = "8",
    more: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Node:
    """`node("n1", cpu="4", more={"nvidia.com/gpu": "2"})`."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110", **(more or {})}
    written = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(written, Node)


def pod(
    name: str,
    on: str,
    *,
    uid: str = "",
    deployment: str = "",
    app: str = "",
    phase: str = "Running",
    requests: Mapping[str, Any] | None = None,
) -> Pod:
    labels = {DEPLOYMENT_LABEL: deployment, APP_LABEL: app} if deployment else {}
    written = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "labels": labels,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"requests": dict(requests or {})}}],
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(written, Pod)


def seen(
    found: Node,
    pods: Iterable[Pod] = (),
    *,
    devices: Iterable[Device] = (),
    uses: Iterable[DeviceUse] = (),
) -> SeenNode:
    """The node, with those of the pods that are on it."""
    mine = (each for each in pods if each.spec.node_name == found.metadata.name)
    return SeenNode(
        node=pruned_node(found),
        pods=tuple(filter(None, map(observed_pod, mine))),
        devices=tuple(devices),
        uses=tuple(uses),
    )


def gpus(on: str, *names: str) -> tuple[Device, ...]:
    return tuple(Device(node=on, name=each, kind="nvidia-gpu") for each in names)
