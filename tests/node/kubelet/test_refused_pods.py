"""Pods that the agent refuses are failed at the API server, and their controllers try elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.kube import manifests
from dovetail.kube.manifests.installation import Installation
from tests.node.kubelet.seen import ONE_CPU_FREE
from tests.support.kube.cluster import OK
from tests.support.node.kubelet.bed import PODS, NodeBed
from tests.support.node.kubelet.node import ROLES, RealNode
from tests.support.node.kubelet.pods import pod_object

NO_ROOM: dict[str, Any] = {"role": "storage", "cpu": "1"}
"""There are no CPUs beside those of the pools."""


@pytest.fixture(scope="module")
def options() -> dict[str, object]:
    return {"nodes": 2}


@pytest.fixture(scope="module")
def failing(shared_bed: NodeBed) -> NodeBed:
    """The first agent writes with an account of its own, the second with its kubelet's."""
    chosen = Installation(namespace="default")
    for each in yaml.safe_load_all(manifests.text(["agent"], chosen)):
        shared_bed.cluster.apply(each)
    account = shared_bed.cluster.user("system:serviceaccount:default:dovetail-agent")
    switch_on(shared_bed.nodes[0], account)
    second = shared_bed.nodes[1]
    switch_on(second, shared_bed.cluster.user(f"system:node:{second.name}", ("system:nodes",)))
    return shared_bed


def switch_on(node: RealNode, kubeconfig: Path) -> None:
    node.agent.settings["refusals"] = {
        "fail_pods": True,
        "after": "500ms",
        "kubeconfig": str(kubeconfig),
    }
    node.agent.restart()
    node.await_plugins()


@pytest.fixture
def bed(failing: NodeBed) -> Iterator[NodeBed]:
    yield failing
    failing.cluster.kubectl("delete", "replicasets", "--all", "--wait=false")
    for node in failing.nodes:
        failing.cluster.cordon(node.name, undo=True)
        node.write_roles(ROLES)
    failing.delete_pods()


def failed_lines(node: RealNode) -> list[dict[str, Any]]:
    """What the agent says when a pod has failed and stays so."""
    return [each for each in node.agent.lines if each["event"] == "refused pod failed"]


@pytest.mark.parametrize("number", [0, 1], ids=["own-account", "kubelets-account"])
def test_refused_pod_is_failed_and_stays_so(bed: NodeBed, number: int) -> None:
    node = bed.nodes[number]
    uid = bed.create_pod("own", node=node.name, **NO_ROOM)["metadata"]["uid"]
    bed.await_phase("own", "Failed")
    bed.await_that(
        lambda: [each for each in failed_lines(node) if each["uid"] == uid], "the agent is sure"
    )
    # The kubelet may have written the phase alone in between.
    last = bed.await_pod("own", lambda pod: "reason" in pod["status"], "its reason")
    assert last["status"]["reason"] == "UnexpectedAdmissionError"
    assert "wants 1 CPUs of its own" in last["status"]["message"]
    assert last["status"]["phase"] == "Failed"
    assert last["metadata"]["uid"] == uid
    assert bed.agent.told("state")["pods"] == []


def test_replica_set_has_its_pod_elsewhere(bed: NodeBed) -> None:
    first, second = bed.nodes
    second.write_roles(ONE_CPU_FREE)
    bed.cluster.cordon(second.name)
    pod, labels = pod_object("own", **NO_ROOM), {"app": "own"}
    metadata = {"labels": labels, "annotations": pod["metadata"]["annotations"]}
    template = {"metadata": metadata, "spec": pod["spec"]}
    bed.cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "own", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    )
    refused = bed.await_that(lambda: of_phase(bed, "Failed"), "a pod that its node refused")
    assert {each["spec"]["nodeName"] for each in refused} == {first.name}
    bed.cluster.cordon(first.name)
    bed.cluster.cordon(second.name, undo=True)
    (running,) = bed.await_that(lambda: of_phase(bed, "Running"), "a pod elsewhere")
    assert running["spec"]["nodeName"] == second.name
    name = running["metadata"]["name"]
    assert bed.pinned(name).cpus == "1"


def of_phase(bed: NodeBed, phase: str) -> list[dict[str, Any]]:
    status, said = bed.cluster.request("GET", PODS)
    assert status == OK, said
    return [each for each in json.loads(said)["items"] if each["status"].get("phase") == phase]


def test_static_pod_is_never_failed(bed: NodeBed) -> None:
    manifest = pod_object("kept", **NO_ROOM)
    draft = bed.node.static_pods.parent / "kept.draft"
    draft.write_text(json.dumps(manifest))
    placed = bed.node.static_pods / "kept.json"
    draft.rename(placed)
    name = f"kept-{bed.node.name}"
    try:
        bed.await_event(name, "FailedCreatePodSandBox", "plugin_refused")
        bed.await_that(lambda: len(refusals(bed, name)) > 2, "refused again and again")
        pod = bed.pod(name)
        assert pod
        assert pod["status"]["phase"] == "Pending"
        assert not [each for each in failed_lines(bed.node) if name in each["pod"]]
    finally:
        placed.unlink()
        bed.await_gone(name)


def refusals(bed: NodeBed, name: str) -> list[dict[str, Any]]:
    told = [each for each in bed.agent.lines if each["event"] == "rejected"]
    return [each for each in told if each.get("pod") == f"default/{name}"]


def test_pod_that_comes_to_its_room_in_time_is_not_failed(bed: NodeBed) -> None:
    bed.node.agent.settings["refusals"]["after"] = "10m"
    bed.node.agent.restart()
    bed.node.await_plugins()
    try:
        bed.create_pod("own", node=bed.node.name, **NO_ROOM)
        bed.await_event("own", "FailedCreatePodSandBox", "plugin_refused")
        bed.node.write_roles(ONE_CPU_FREE)
        bed.await_running("own")
    finally:
        bed.node.agent.settings["refusals"]["after"] = "500ms"
        bed.node.agent.restart()
        bed.node.await_plugins()
