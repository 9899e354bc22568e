"""The four clusters of the acceptance scenario: as kubectl lists them, and as a fleet snapshot.

What is free on a node is what it has less what pods on it ask for. So each node has a little more
than the scenario's table says, and a pod of the system that asks for just that; pods that ended and
pods without a node ask for much, and take nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dovetail.intents.fleet import ClusterHealth, ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.names import ClusterName, cluster_name
from dovetail.podfit.objects import Node, Pod

Json = dict[str, Any]
Free = Mapping[str, str]
"""By resource, as Kubernetes writes it."""

PROVIDER = "p1"
LABEL = "edge"
"""All four clusters have it."""
OBSERVED_AT = 1_790_000_000
SYSTEM_MILLICPU, SYSTEM_MEMORY_MB = 250, 128
"""What the system's pod on each node asks for."""

GPU, QAT = "nvidia.com/gpu", "intel.com/qat"

CLUSTERS: Mapping[str, Mapping[str, Free]] = {
    "c1": {
        "n1": {"cpu": "8", "memory": "16000M", GPU: "1"},
        "n2": {"cpu": "2", "memory": "4000M"},
    },
    "c2": {
        "n1": {"cpu": "4", "memory": "8000M", QAT: "1"},
        "n2": {"cpu": "1", "memory": "4000M"},
    },
    "c3": {
        "n1": {"cpu": "3", "memory": "8000M"},
        "n2": {"cpu": "3", "memory": "8000M", GPU: "1"},
        "n3": {"cpu": "3", "memory": "8000M", QAT: "2"},
    },
    "c4": {"n1": {"cpu": "16", "memory": "64000M", QAT: "4"}},
}


def name_of(cluster: str) -> ClusterName:
    """`p1+c1` of `c1`."""
    return cluster_name(PROVIDER, cluster)


def kubectl_list(nodes: Mapping[str, Free], *, cordoned: bool = False) -> Json:
    """`kubectl get nodes,pods -A -o json` of a cluster with so much free."""
    items = [_node(name, free, cordoned=cordoned) for name, free in nodes.items()]
    items += [_system_pod(name) for name in nodes]
    first = next(iter(nodes), "")
    if first:
        items.append(_pod("report-28719", first, "Succeeded", {"cpu": "4", "memory": "4000M"}))
    items.append(_pod("too-large", "", "Pending", {"cpu": "96"}))
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


def inventory(
    cluster: str, document: Json, *, state: ClusterHealth = ClusterHealth.READY
) -> ClusterInventory:
    """Of a cluster that kubectl lists so."""
    items = document["items"]
    pods = [msgspec.convert(each, Pod) for each in items if each["kind"] == "Pod"]
    nodes = [msgspec.convert(each, Node) for each in items if each["kind"] == "Node"]
    return ClusterInventory(
        name=name_of(cluster),
        nodes=tuple(ClusterNode(node=node, pods=_pods_on(node, pods)) for node in nodes),
        labels=frozenset((LABEL,)),
        state=state,
        why="" if state is ClusterHealth.READY else "connection refused",
        observed_at=OBSERVED_AT,
        version=1,
    )


def snapshot(*clusters: ClusterInventory) -> FleetSnapshot:
    ordered = sorted(clusters, key=lambda each: each.name)
    return FleetSnapshot(clusters={each.name: each for each in ordered}, taken_at=OBSERVED_AT + 30)


def _pods_on(node: Node, pods: list[Pod]) -> tuple[Pod, ...]:
    return tuple(
        pod
        for pod in pods
        if pod.spec.node_name == node.metadata.name
        and pod.status.phase not in ("Succeeded", "Failed")
    )


def _node(name: str, free: Free, *, cordoned: bool) -> Json:
    has = {
        **free,
        "cpu": f"{_millis(free['cpu']) + SYSTEM_MILLICPU}m",
        "memory": f"{int(free['memory'].removesuffix('M')) + SYSTEM_MEMORY_MB}M",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    spec: Json = {"podCIDR": "10.244.0.0/24"}
    if cordoned:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        spec |= {"unschedulable": True, "taints": [taint]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64"},
        },
        "spec": spec,
        "status": {
            "capacity": dict(has),
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"kubeletVersion": "v1.34.1", "architecture": "amd64"},
        },
    }


def _millis(cpu: str) -> int:
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000


def _system_pod(node: str) -> Json:
    requests = {"cpu": f"{SYSTEM_MILLICPU}m", "memory": f"{SYSTEM_MEMORY_MB}M"}
    return _pod(f"kube-proxy-{node}", node, "Running", requests)


def _pod(name: str, node: str, phase: str, requests: Json) -> Json:
    spec: Json = {
        "containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}]
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"pod-{name}"},
        "spec": spec,
        "status": {"phase": phase},
    }
