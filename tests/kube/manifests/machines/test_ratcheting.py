"""Only changes are judged: what was wrong before is in nobody's way, deletion's least of all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from dovetail.kube import manifests
from tests.kube.manifests.machines.api import MACHINES, install_kinds, machine_object, one_type
from tests.support.kube.cluster import Cluster

FINALIZER = "example.com/held"


def without_rules(schema: Any) -> Any:
    """The same schema with neither rules nor limits: as another definition had it before."""
    if isinstance(schema, list):
        return [without_rules(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = ("x-kubernetes-validations", "enum", "minimum", "maximum", "exclusiveMinimum")
    return {key: without_rules(value) for key, value in schema.items() if key not in dropped}


@pytest.fixture
def left_over(own_cluster: Cluster) -> Cluster:
    """A Machine from before the rules: its shape, its name and a mode are wrong."""
    cluster = own_cluster
    crds = list(yaml.safe_load_all(manifests.text(["machines-crds"])))
    cluster.apply(*without_rules(crds))
    machine = machine_object(one_type("3090s", spec={"cpu": "0", "memory": "4Gi"}))
    machine["metadata"]["finalizers"] = [FINALIZER]
    machine["spec"]["nodePool"][0]["mode"] = "broken"
    cluster.await_that(lambda: cluster.request("POST", MACHINES, machine)[0] == 201, "Machine")
    install_kinds(cluster)
    bad = machine_object(machine["spec"], name="another")
    path = f"{MACHINES}?dryRun=All"
    cluster.await_that(lambda: cluster.request("POST", path, bad)[0] == 422, "rules")
    return cluster


def patch(cluster: Cluster, patch: object, *more: str) -> str:
    name = ("machine", "general-machine", "--type=json", *more)
    return cluster.kubectl("patch", *name, "-p", json.dumps(patch), check=False)


def put(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def test_letter_j_only_what_changed_is_judged_and_deletion_never_hangs(left_over: Cluster) -> None:
    cluster = left_over
    assert "patched" in patch(cluster, [put("/metadata/annotations", {"a": "b"})])
    assert "patched" in patch(cluster, [put("/spec/machineTypes/0/available", 7)])
    assert "patched" in patch(cluster, [put("/spec/nodePool/0/taint", True)])
    node = {"name": "n1", "machineType": [{"name": "3090s"}]}
    assert "patched" in patch(cluster, [put("/spec/nodePool/-", node)])
    assert "patched" in patch(
        cluster, [put("/status", {"acceptedGeneration": 1})], "--subresource=status"
    )
    assert "nodePool[0].mode" in patch(cluster, [put("/spec/nodePool/0/mode", "worse")])
    assert "spec.cpu" in patch(cluster, [put("/spec/machineTypes/0/spec/cpu", "-1")])
    assert "patched" in patch(cluster, [put("/spec/machineTypes/0/spec/cpu", "2")])
    cluster.kubectl("delete", "machine", "general-machine", "--wait=false")
    assert "patched" in patch(cluster, [{"op": "remove", "path": "/metadata/finalizers"}])
    gone = f"{MACHINES}/general-machine"
    cluster.await_that(lambda: cluster.request("GET", gone)[0] == 404, "deletion")
