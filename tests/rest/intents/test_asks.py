"""What users of other systems ask for and do not have, ten asks by number, over HTTP.

The table is in docs/ambiguities/intents.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.rest.client import Client
from tests.rest.intents.client import named
from tests.rest.intents.operator import Operator

Json = dict[str, Any]
COMPOSITE = "projects/p/composite-apps/c/v1"
GPU = "nvidia.com/gpu"
FABRIC = "example.com/fabric"


class Edge(Operator):
    """Clusters and an app, put together in few words."""

    def cluster(self, name: str, *items: Json) -> None:
        """One of provider `p`, with these nodes and slices."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(items)}
        self.made("cluster-providers/p/clusters", named(name, snapshot=listed))

    def app(self, name: str, *objects: Json) -> None:
        file = yaml.safe_dump_all(objects).encode()
        assert self.form("POST", f"{COMPOSITE}/apps", named(name), file).status_code == 201

    def group(self, name: str) -> str:
        self.made(f"{COMPOSITE}/deployment-intent-groups", named(name))
        return f"{COMPOSITE}/deployment-intent-groups/{name}"

    def needs(
        self, group: str, app: str, *resources: Json, consumer: Json | None = None, **options: Any
    ) -> None:
        """What the one container of the app's one Deployment needs."""
        intents = f"{group}/hpa-intents"
        self.made(intents, named(f"{app}-hardware", app=app))
        consumers = f"{intents}/{app}-hardware/hpa-resource-consumers"
        about = {"kind": "Deployment", "name": app, "container": "main", **(consumer or {})}
        self.made(consumers, named(app, **about))
        for number, each in enumerate(resources):
            spec = {"allocatable": "key" not in each, "resource": each, **options}
            self.made(f"{consumers}/{app}/resource-requirements", named(f"n{number}", **spec))

    def places(self, group: str, app: str, **intent: Any) -> None:
        """A generic placement intent for the app."""
        where = f"{group}/generic-placement-intents"
        if self.get(f"{where}/where").status_code == 404:
            self.made(where, named("where"))
        self.made(f"{where}/where/app-intents", named(f"{app}-where", app=app, **intent))

    def why(self, group: str) -> dict[str, str]:
        """By cluster."""
        refused = self.plan(group)["refused"]
        return {each["cluster"]: each["words"] for each in refused if "cluster" in each}


@pytest.fixture
def edge(whole: Client) -> Edge:
    made = Edge(whole)
    made.made("cluster-providers", named("p"))
    made.made("projects", named("p"))
    made.made("projects/p/composite-apps", named("c", compositeAppVersion="v1"))
    return made


def node(name: str, labels: Mapping[str, str] | None = None, **has: str) -> Json:
    names = {"gpu": GPU}
    amounts = {names.get(key, key): value for key, value in has.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def resource_slice(on: str, **memory: str) -> Json:
    """Devices of a DRA driver, by name, with so much memory each."""
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


def deployment(name: str, replicas: int = 1, **requests: str) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [
                        {"name": "main", "image": "x", "resources": {"requests": requests}}
                    ]
                },
            },
        },
    }


def at_least(memory: str) -> Json:
    expression = {"key": "memory", "operator": "GtEq", "values": [memory]}
    return {"resourceSelector": [{"matchExpressions": [expression]}]}


def nodes_of(plan: Json, app: str) -> dict[str, int]:
    (placed,) = (each for each in plan["placements"] if each["app"] == app)
    (workload,) = placed["workloads"]
    found: dict[str, int] = workload["nodes"]
    return found


def test_ask_1_clusters_by_dra_devices(edge: Edge) -> None:
    """Which cluster has a device with so much memory, by its ResourceSlices."""
    edge.cluster("small", node("n1"), resource_slice("n1", a="16Gi", b="24Gi"))
    edge.cluster("large", node("n1"), resource_slice("n1", a="16Gi", b="80Gi"))
    edge.app("train", deployment("train"))
    group = edge.group("g")
    edge.needs(group, "train", {"selector": at_least("40Gi"), "requests": 1})
    plan = edge.plan(group)
    assert edge.picked(group) == {"train": ["p+large"]}
    (placed,) = plan["placements"]
    (device,) = placed["workloads"][0]["devices"]
    assert (device["node"], device["device"].rpartition(".")[2]) == ("n1", "b")
    kinds = [each["kind"] for each in placed["objects"]]
    assert "ResourceClaimTemplate" in kinds
    assert "p+small" in edge.why(group)


def test_ask_2_gpus_are_charged_and_not_the_node(edge: Edge) -> None:
    edge.cluster("c", node("n1", gpu="4"))
    edge.app("one", deployment("one", cpu="1"))
    first, second = edge.group("g1"), edge.group("g2")
    for group in (first, second):
        edge.needs(group, "one", {"name": GPU, "limits": 2})
        edge.instantiate(group)
    charges = [
        charge["resources"]
        for group in (first, second)
        for app in edge.status(group)["apps"]
        for each in app["clusters"]
        for charge in each["charges"]
    ]
    assert [each[GPU] for each in charges] == [2, 2]
    assert [each["cpu"] for each in charges] == [1000, 1000]


def test_ask_3_reasons_for_each_cluster(edge: Edge) -> None:
    edge.cluster("full", node("n1", gpu="0"))
    edge.cluster("few", node("n1", gpu="1"), node("n2", gpu="1"))
    edge.cluster("drained", {**node("n1", gpu="8"), "spec": {"unschedulable": True}})
    edge.app("one", deployment("one"))
    group = edge.group("g")
    edge.needs(group, "one", {"name": GPU, "limits": 2})
    why = edge.why(group)
    assert why["p+full"] == f"{GPU}: need 2, none"
    assert why["p+few"] == f"{GPU}: need 2 on one node, largest free 1 (n1,n2)"
    assert why["p+drained"] == "every node is cordoned"
    said = edge.refused(group)
    told = {each["cluster"]: each["words"] for each in said["reasons"] if "cluster" in each}
    assert told == why


def test_ask_4_two_decisions_in_flight_never_share_capacity(edge: Edge) -> None:
    """What is promised counts from the moment it is: no pod of it has to be there."""
    edge.cluster("c", node("n1", gpu="1"))
    edge.app("one", deployment("one"))
    first, second = edge.group("g1"), edge.group("g2")
    for group in (first, second):
        edge.needs(group, "one", {"name": GPU, "limits": 1})
    edge.instantiate(first)
    assert edge.refused(second)["status"] == 422
    assert edge.act(first, "terminate").status_code == 202
    assert edge.act(second, "instantiate").status_code == 202


def test_ask_5_components_fit_jointly_or_are_refused(edge: Edge) -> None:
    """Three of three CPUs are not four of four, though totals say so."""
    edge.cluster("c", node("n1", cpu="6"), node("n2", cpu="6"))
    edge.app("parts", deployment("a", cpu="4"), deployment("b", cpu="4"), deployment("d", cpu="4"))
    group = edge.group("g")
    assert not edge.plan(group)["feasible"]
    assert "cpu" in edge.why(group)["p+c"]


def test_ask_6_filtered_and_scored_not_first_to_admit(edge: Edge) -> None:
    edge.cluster("a", node("n1"))
    edge.cluster("b", node("n1", {"fast": "true"}))
    edge.app("one", deployment("one"))
    group = edge.group("g")
    wish = {"key": "fast", "value": "true"}
    edge.needs(group, "one", wish, mandatory=False, weight=7)
    pick = edge.plan(group)["pick"]
    assert pick["apps"] == {"one": [{"cluster": "p+b", "score": 7, "rank": 0}]}


def test_ask_7_overflow_only_when_the_first_is_full(edge: Edge) -> None:
    edge.cluster("home", node("n1", gpu="2"))
    edge.cluster("cloud", node("n1", {"fast": "true"}, gpu="8"))
    edge.app("one", deployment("one"))
    taken = []
    for number in range(3):
        group = edge.group(f"g{number}")
        edge.places(
            group,
            "one",
            intent={
                "anyOf": [{"clusterProvider": "p", "cluster": each} for each in ("home", "cloud")]
            },
            preference=[{"clusterProvider": "p", "cluster": "home"}],
        )
        edge.needs(group, "one", {"name": GPU, "limits": 1})
        taken += edge.instantiate(group)["apps"]["one"]
    assert [each["cluster"] for each in taken] == ["p+home", "p+home", "p+cloud"]


def test_ask_8_what_was_charged_is_what_runs(edge: Edge) -> None:
    """Whoever reads the cluster anew, status says of each pod where it runs, and if that is
    charged; tests/kube/deploy shows it on real clusters."""
    edge.cluster("c", node("n1", gpu="1"), node("n2"))
    edge.app("one", deployment("one", cpu="1"))
    group = edge.group("g")
    edge.needs(group, "one", {"name": GPU, "limits": 1})
    made = edge.instantiate(group)
    (charge,) = charges_of(edge.status(group))
    assert charge["node"] == "n1"
    pod = running("one-x", "n1", made["deployment"], "one", {"cpu": "1", GPU: "1"})
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("n1", gpu="1"), node("n2"), pod]}
    again = named("c", snapshot=listed)
    assert edge.put("cluster-providers/p/clusters/c", again).status_code == 200
    (cluster,) = edge.status(group)["apps"][0]["clusters"]
    assert [(each["name"], each["node"], each["charged"]) for each in cluster["pods"]] == [
        ("one-x", "n1", True)
    ]
    # It is counted once: the GPU is taken, and nothing else of that kind is.
    other = edge.group("other")
    edge.needs(other, "one", {"name": "cpu", "requests": 7})
    assert edge.plan(other)["feasible"]


def charges_of(status: Json) -> list[Json]:
    return [
        charge for app in status["apps"] for each in app["clusters"] for charge in each["charges"]
    ]


def running(name: str, on: str, deployed: str, app: str, requests: Json) -> Json:
    labels = {"dovetail.dev/deployment": deployed, "dovetail.dev/app": app, "app": app}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


def test_ask_9_a_gang_is_never_split_over_fabrics(edge: Edge) -> None:
    """Six GPUs, but four of one fabric at the most: a gang of five has no place."""
    fabrics = [("n1", "a"), ("n2", "a"), ("n3", "b")]
    edge.cluster("c", *(node(name, {FABRIC: each}, gpu="2") for name, each in fabrics))
    edge.app("train", deployment("train", replicas=4))
    group = edge.group("g")
    edge.needs(group, "train", {"name": GPU, "limits": 1}, consumer={"withinOne": FABRIC})
    plan = edge.plan(group)
    assert nodes_of(plan, "train") == {"n1": 2, "n2": 2}
    assert "example.com/fabric" in str(plan["placements"][0]["objects"])
    edge.app("five", deployment("five", replicas=5))
    large = edge.group("large")
    edge.needs(large, "five", {"name": GPU, "limits": 1}, consumer={"withinOne": FABRIC})
    assert not edge.plan(large)["feasible"]


def test_ask_10_scores_are_told_and_move_nobody(edge: Edge) -> None:
    edge.cluster("a", node("n1"))
    edge.app("one", deployment("one"))
    group = edge.group("g")
    edge.needs(group, "one", {"key": "fast", "value": "true"}, mandatory=False, weight=7)
    assert edge.instantiate(group)["apps"] == {"one": [{"cluster": "p+a", "score": 0}]}
    edge.cluster("b", node("n1", {"fast": "true"}))
    assert edge.picked(group) == {"one": ["p+a"]}
    (cluster,) = edge.status(group)["apps"][0]["clusters"]
    assert cluster["score"] == 0
