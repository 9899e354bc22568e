"""Rules of manifests beside a real API server: defaults, what it takes, and what it lets change."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dovetail.intents.group import DeviceRequirement, HpaIntent, ManifestObject, ResourceConsumer
from dovetail.intents.manifests.editing import edited
from dovetail.intents.manifests.grants import (
    AppGrants,
    ConsumerGrant,
    DeviceAccess,
    DeviceSource,
    WorkloadPin,
)
from dovetail.intents.manifests.workloads import KINDS, pods_of
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import pod_request_of
from tests.intents.manifests.charts import amount, app, container, label, workload
from tests.intents.manifests.test_claims import LARGE
from tests.intents.manifests.test_immutability import WORKLOAD_CHANGES, changed
from tests.support.kube.cluster import Cluster

Json = dict[str, Any]
WHOLE = {"limits": {"cpu": "8", "memory": "1G"}}
HUGE = {"hugepages-2Mi": "4Mi", "memory": "1G"}
PORTS = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "protocol": "UDP"}]
SIDECAR = {**container("sidecar", limits={"cpu": "3"}), "restartPolicy": "Always"}
PODS = {
    "limits": workload("Pod", "a", container(limits={"cpu": 2, "memory": "1Gi"})),
    "both": workload("Pod", "a", container(limits={"cpu": 2}, requests={"cpu": "1"})),
    "ports": workload("Pod", "a", {**container(), "ports": PORTS}, hostNetwork=True),
    "whole": workload("Pod", "a", container(), resources=WHOLE),
    "whole-some": workload(
        "Pod", "a", container(requests={"cpu": "1"}), container("b"), resources=WHOLE
    ),
    "whole-sidecar": workload(
        "Pod", "a", container(requests={"cpu": "1"}), initContainers=[SIDECAR], resources=WHOLE
    ),
    "whole-init": workload(
        "Pod",
        "a",
        container(),
        initContainers=[container("init", requests={"cpu": "3"})],
        resources=WHOLE,
    ),
    "whole-huge": workload(
        "Pod",
        "a",
        container(limits=HUGE),
        resources={"limits": {"hugepages-2Mi": "8Mi", "memory": "2G", "cpu": "1"}},
    ),
    "nulls": workload("Pod", "a", nodeSelector=None, tolerations=None, affinity=None),
}


def sent(cluster: Cluster, namespace: str, *objects: ManifestObject) -> list[Json]:
    """What the API server makes of them, by server-side apply, with unknown fields refused; nothing
    stays."""
    bundle = {"apiVersion": "v1", "kind": "List", "items": [dict(each) for each in objects]}
    arguments = ("--dry-run=server", "--validate=strict", "-n", namespace, "-o", "json", "-f", "-")
    found = json.loads(cluster.kubectl("apply", "--server-side", *arguments, given=bundle))
    return list(found["items"])


def test_defaults_of_pods(cluster: Cluster, namespace: str) -> None:
    """What packing sees is what the API server makes of a chart's pod."""
    named = [{**pod, "metadata": {**pod["metadata"], "name": name}} for name, pod in PODS.items()]
    made = sent(cluster, namespace, *named)
    for theirs, ours in zip(made, named, strict=True):
        wanted = pod_request_of(msgspec.convert(theirs, Pod))
        found = pod_request_of(pods_of(app(ours), namespace)[0].pod)
        for field in ("amounts", "score_amounts", "ports", "node_labels", "node_terms"):
            assert getattr(found, field) == getattr(wanted, field), (ours["metadata"], field)


SOURCES = {
    "claim": DeviceSource(access=DeviceAccess.CLAIM, name="gpu.example.com", definition=LARGE),
    "own": DeviceSource(access=DeviceAccess.CLAIM, definition=LARGE),
    "plugin": DeviceSource(access=DeviceAccess.RESOURCE, name="nvidia.com/gpu"),
}
TERMS = [
    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]},
]
AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS}}
}


def everything(kind: str, source: str) -> tuple[ManifestObject, ...]:
    """A workload with all that an intent can ask for."""
    name = f"{kind.lower()}-{source}"
    chart = workload(
        kind, name, container(limits={"cpu": "500m"}), container("side"), affinity=AFFINITY
    )
    who = ResourceConsumer(
        name="Core_X",
        kind=kind,
        object_name=name,
        container="main",
        replicas=3 if KINDS[kind].replicas else None,
        within_one="acme.com/fabric",
        requirements=(
            amount("cpu", "4", "4"),
            amount("memory", "1000M"),
            amount("intel.com/qat", "2"),
            amount("hugepages-2Mi", "4Mi"),
            label("zone", "a"),
            label("cores", "8", operator="Gt"),
            label("turbo", "true", mandatory=False, weight=7, name="turbo"),
            DeviceRequirement(name="GPUs", count=2, class_name="large"),
        ),
    )
    grant = ConsumerGrant(
        intent="i.1",
        consumer=who.name,
        optional=frozenset({"turbo"}),
        within_one="f1",
        devices={"GPUs": SOURCES[source]},
    )
    pin = WorkloadPin(object_index=0, nodes=("n1", "n2"), why="planned")
    grants = AppGrants(deployment="d1", consumers=(grant,), pins=(pin,))
    intents = [HpaIntent(name="i.1", app="shop", consumers=(who,))]
    return edited(app(chart), intents, grants, "default").objects


@pytest.mark.parametrize("source", SOURCES)
def test_edited_objects_are_taken(cluster: Cluster, namespace: str, source: str) -> None:
    objects = [each for kind in KINDS for each in everything(kind, source)]
    assert len(sent(cluster, namespace, *objects)) == len(objects)


@pytest.mark.parametrize("row", WORKLOAD_CHANGES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_changes_of_workloads(
    cluster: Cluster, namespace: str, row: tuple[str, str, Any, list[str]]
) -> None:
    """What can be changed, and what is refused."""
    kind, path, value, expected = row
    before = workload(kind)
    arguments = ("apply", "--server-side", "-n", namespace, "-f", "-")
    cluster.kubectl(*arguments, given=before)
    refusal = ""
    try:
        cluster.kubectl(*arguments, "--dry-run=server", given=changed(before, path, value))
    except AssertionError as error:
        refusal = str(error)
    assert bool(refusal) == bool(expected), refusal
