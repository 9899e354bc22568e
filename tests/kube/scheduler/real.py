"""Schedulers as processes of their own, against a real API server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dovetail.devices.allocation_document import read_allocation
from dovetail.kube import manifests
from dovetail.ledger import open_ledger
from dovetail.ledger.devices import held
from tests.support.kube.cluster import Cluster
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

READY = "ready to place pods"


def install(cluster: Cluster) -> None:
    """The kind ResourceClass, and a namespace for leases."""
    for each in yaml.safe_load_all(manifests.text(["crds"])):
        cluster.apply(each)
    cluster.kubectl("wait", "--for=condition=Established", "crd/resourceclasses.dovetail.dev")


def scheduler(cluster: Cluster, database: str, name: str, *more: str) -> Process:
    """Not started yet."""
    command = [DOVETAIL, "scheduler", "--database", database]
    command += ["--kubeconfig", cluster.kubeconfig, "--lease-namespace", "default", *more]
    return Process(command, cluster.directory / f"{name}.log", name=name)


def is_ready(process: Process) -> bool:
    process.check()
    return READY in process.output


def devices(*names: str, kind: str = "gpu") -> Mapping[str, str]:
    """The annotation of a node that has them."""
    return {"dovetail.dev/devices": json.dumps([{"name": name, "kind": kind} for name in names])}


def class_object(name: str, kind: str = "gpu") -> dict[str, Any]:
    expression = {"key": "Kind", "operator": "In", "values": [kind]}
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "ResourceClass",
        "metadata": {"name": name},
        "spec": {"resourceSelector": [{"matchExpressions": [expression]}]},
    }


def pod_object(
    name: str, namespace: str, classes: Mapping[str, int], scheduler: str = "dovetail"
) -> dict[str, Any]:
    asked = {f"resourceclass.dovetail.dev/{key}": str(count) for key, count in classes.items()}
    container = {"name": "main", "image": "none", "resources": {"requests": asked, "limits": asked}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
        },
    }


def pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        cluster.kubectl("get", "pods", "-n", namespace, "-o", "json")
    )["items"]
    return found


def bound(cluster: Cluster, namespace: str) -> int:
    return sum(1 for pod in pods(cluster, namespace) if pod["spec"].get("nodeName"))


def create(cluster: Cluster, objects: Sequence[Mapping[str, Any]]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("create", "-f", "-", given=listed)


def told_by_pods(cluster: Cluster, namespace: str) -> dict[str, dict[tuple[str, str], int]]:
    """By uid, the units of (node, device) that the annotations of bound pods say."""
    found: dict[str, dict[tuple[str, str], int]] = {}
    for pod in pods(cluster, namespace):
        node = pod["spec"].get("nodeName")
        said = read_allocation(pod["metadata"].get("annotations", {})) if node else None
        if said is not None:
            assert said.node == node
            mine = found.setdefault(pod["metadata"]["uid"], {})
            for each in said.holdings:
                mine[node, each.device] = mine.get((node, each.device), 0) + each.units
    return found


def told_by_ledger(database: str) -> dict[str, dict[tuple[str, str], int]]:
    """By consumer, the units of (node, device) that it holds."""
    ledger = open_ledger(database)
    try:
        found: dict[str, dict[tuple[str, str], int]] = {}
        for each in ledger.read(held).result():
            found.setdefault(each.consumer, {})[each.node, each.device] = each.units
        return found
    finally:
        ledger.close()


def log_of(directory: Path, name: str) -> str:
    return (directory / f"{name}.log").read_text()
