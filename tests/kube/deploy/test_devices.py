"""Devices by their properties on a real cluster: what was charged is what kube-scheduler hands out.

The devices come from ResourceSlices; pods ask for them by claims that the edited objects bring.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.deploy.fleet import RealFleet, running_fleet, until
from tests.support.intents.caller import Caller
from tests.support.intents.rest_documents import Post
from tests.support.kube.cluster import Cluster, node_object

Json = dict[str, Any]
COMPOSITE = "projects/dra/composite-apps/c/v1"
GROUP = f"{COMPOSITE}/deployment-intent-groups/g"
CONSUMERS = f"{GROUP}/hpa-intents/hardware/hpa-resource-consumers"
ONLY_THERE = "test/dra"


@pytest.fixture
def fleet(clusters: tuple[Cluster, Cluster], tmp_path: Path) -> Iterator[RealFleet]:
    cluster = clusters[0]
    cluster.start_resource_claims()
    for name in ("dra-1", "dra-2"):
        body = node_object(name, labels={ONLY_THERE: "true"})
        cluster.kubectl("create", "-f", "-", given=body)
    cluster.apply(resource_slice("dra-1", small="16Gi"), resource_slice("dra-2", large="80Gi"))
    with running_fleet({"c1": cluster}, tmp_path) as running:
        describe(running.caller)
        yield running


def resource_slice(on: str, **memory: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": on,
            "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": name, "capacity": {"memory": {"value": size}}}
                for name, size in memory.items()
            ],
        },
    }


def describe(caller: Caller) -> None:
    """An app whose one pod needs a device with 40 GiB at least."""
    pod = {"containers": [{"name": "main", "image": "x"}]}
    template = {"metadata": {"labels": {"app": "train"}}, "spec": pod}
    selector = {"matchLabels": {"app": "train"}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }
    expression = {"key": "memory", "operator": "GtEq", "values": ["40Gi"]}
    resource = {
        "selector": {"resourceSelector": [{"matchExpressions": [expression]}]},
        "requests": 1,
    }
    for path, name, spec, file in (
        ("projects", "dra", None, None),
        ("projects/dra/composite-apps", "c", {"compositeAppVersion": "v1"}, None),
        (f"{COMPOSITE}/apps", "train", None, yaml.safe_dump(manifest)),
        (f"{COMPOSITE}/deployment-intent-groups", "g", None, None),
        (f"{GROUP}/hpa-intents", "hardware", {"app": "train"}, None),
        (CONSUMERS, "train", {"kind": "Deployment", "name": "train", "container": "main"}, None),
        (
            f"{CONSUMERS}/train/resource-requirements",
            "gpu",
            {"allocatable": True, "resource": resource},
            None,
        ),
    ):
        body = {"metadata": {"name": name}, **({"spec": spec} if spec else {})}
        caller.post(Post(path=path, body=body, file=file))


def test_what_was_charged_is_what_is_handed_out(fleet: RealFleet) -> None:
    deployment = fleet.instantiate(GROUP)
    until(lambda: fleet.state(GROUP) == "Instantiated", "deployment")
    until(lambda: [each["phase"] for each in fleet.pods(GROUP)] == ["Running"], "pod")
    (pod,) = fleet.pods(GROUP)
    assert (pod["node"], pod["charged"]) == ("dra-2", True)
    claims = json.loads(fleet.clusters["c1"].kubectl("get", "resourceclaims", "-A", "-o", "json"))[
        "items"
    ]
    (claim,) = claims
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert given["device"] == "large"
    charged = fleet.charges(GROUP)["c1", "dra-2"]
    (device,) = (each for each in charged if each.startswith("device "))
    assert device.endswith("large")
    fleet.end(GROUP, deployment)
    left = fleet.clusters["c1"].kubectl(
        "get", "resourceclaims,resourceclaimtemplates", "-A", "-o", "name"
    )
    assert left.strip() == ""
