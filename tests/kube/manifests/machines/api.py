"""The API server's word on Machines: asked over HTTP, since a kubectl for each case takes long."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from dovetail.kube import manifests
from dovetail.machines.names import MACHINE_GROUP
from tests.machines.building import GENERAL
from tests.support.kube.cluster import Cluster

MACHINES = "/apis/imperator.tenzen-y.io/v1alpha1/machines"
KINDS = (
    "machines.imperator.tenzen-y.io",
    "machinenodepools.imperator.tenzen-y.io",
    "machineshapes.dovetail.dev",
)
CREATED, INVALID = 201, 422


def install_kinds(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(["machines-crds"]))
    names = [f"crd/{kind}" for kind in KINDS]
    cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=20s")
    cluster.await_that(lambda: cluster.request("GET", MACHINES)[0] == 200, "list of Machines")


def machine_object(spec: dict[str, Any] | None = None, **about: Any) -> dict[str, Any]:
    """`about` is metadata; the group is that of the specification's example unless it says."""
    labels = {MACHINE_GROUP: "general-machine"}
    return {
        "apiVersion": "imperator.tenzen-y.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "general-machine", "labels": labels, **about},
        "spec": deepcopy(GENERAL) if spec is None else spec,
    }


def one_type(name: str = "small", **more: Any) -> dict[str, Any]:
    """A specification of one node and one type of this name; `more` is about the type."""
    machine_type = {
        "name": name,
        "spec": {"cpu": "2", "memory": "4Gi"},
        "available": 1,
        **more,
    }
    return {
        "nodePool": [{"name": "n0", "machineType": [{"name": name}]}],
        "machineTypes": [machine_type],
    }


def shaped(**more: Any) -> dict[str, Any]:
    """The same, whose shape has more to it."""
    return one_type(spec={"cpu": "2", "memory": "4Gi", **more})


def refusals(cluster: Cluster, machine: dict[str, Any], path: str = MACHINES) -> dict[str, str]:
    """What is said about each field when the Machine is created; nothing if it may be."""
    status, said = cluster.request("POST", f"{path}?dryRun=All", machine)
    answer = json.loads(said)
    if status == CREATED:
        return {}
    assert status == INVALID, answer
    return {each["field"]: each["message"] for each in answer["details"]["causes"]}


def refusal(cluster: Cluster, machine: dict[str, Any]) -> str:
    """What is said against the Machine, whoever says it; nothing if it may be created."""
    status, said = cluster.request("POST", f"{MACHINES}?dryRun=All", machine)
    return "" if status == CREATED else str(json.loads(said)["message"])
