"""Small random clusters, as JSON that a real API server accepts.

Few names and values, so that terms, taints and domains meet often; nodes are small, so that they
get full.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import msgspec

from dovetail.core.rows import Rows
from dovetail.podfit.objects import Namespace, Node, Pod
from dovetail.podfit.table import NodeTable

Json = dict[str, Any]

NAMESPACES: dict[str, dict[str, str]] = {"red": {"team": "a"}, "blue": {"team": "b"}, "bare": {}}
ZONE, RACK = "example.com/zone", "example.com/rack"
TOPOLOGIES = (ZONE, RACK, "kubernetes.io/hostname")
KEYS = ("app", "tier")
VALUES = ("x", "y")
GPU = "example.com/gpu"
RESTART_ALL = "RestartAllContainersOnContainerExits"


class World(NamedTuple):
    nodes: list[Json]
    placed: list[Json]
    """Pods with a nodeName."""
    waiting: list[Json]


def world(rng: Random, nodes: int = 5, placed: int = 8, waiting: int = 4) -> World:
    made = [node(rng, f"node-{n}") for n in range(rng.randint(1, nodes))]
    names = [one["metadata"]["name"] for one in made]
    there = [pod(rng, f"placed-{n}", rng.choice(names)) for n in range(rng.randint(0, placed))]
    return World(made, there, [pod(rng, f"waiting-{n}") for n in range(waiting)])


def chance(rng: Random, share: float) -> bool:
    return rng.random() < share


def node(rng: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name} if chance(rng, 0.9) else {}
    if chance(rng, 0.85):
        labels[ZONE] = rng.choice(("a", "b", "c"))
    if chance(rng, 0.7):
        labels[RACK] = rng.choice(("1", "2"))
    if chance(rng, 0.7):
        labels["size"] = rng.choice(("1", "5", "10", "big", "007"))
    amounts = {
        "cpu": rng.choice(("1500m", "4", "8")),
        "memory": rng.choice(("2Gi", "8Gi", "16Gi")),
        "pods": rng.choice(("3", "110", "110")),
    }
    if chance(rng, 0.4):
        amounts[GPU] = rng.choice(("1", "4"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "taints": taints(rng),
            **({"unschedulable": True} if chance(rng, 0.05) else {}),
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "declaredFeatures": [RESTART_ALL] if chance(rng, 0.5) else [],
        },
    }


def taints(rng: Random) -> list[Json]:
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
    found = {
        (rng.choice(("k", "l")), rng.choice(effects)): rng.choice(("", "v", "w"))
        for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2)))
    }
    return [{"key": key, "effect": e, "value": value} for (key, e), value in found.items()]


def pod(rng: Random, name: str, on: str | None = None) -> Json:
    labels = {key: rng.choice(VALUES) for key in KEYS if chance(rng, 0.7)}
    spec: Json = {
        "containers": [container(rng, f"c{n}") for n in range(rng.choice((1, 1, 2)))],
        "terminationGracePeriodSeconds": 0,
    }
    if chance(rng, 0.3):
        spec["initContainers"] = [init(rng, f"i{n}") for n in range(rng.choice((1, 2, 3)))]
    if chance(rng, 0.35):
        spec["tolerations"] = [toleration(rng) for _ in range(rng.choice((1, 2)))]
    if chance(rng, 0.1):
        spec["nodeSelector"] = {ZONE: rng.choice(("a", "b"))}
    if chance(rng, 0.5):
        spec["affinity"] = affinity(rng)
    if chance(rng, 0.35):
        spec["topologySpreadConstraints"] = spreads(rng, labels)
    if chance(rng, 0.25):
        spec["volumes"] = [volume(rng, f"v{n}") for n in range(rng.choice((1, 1, 2)))]
    if on is not None:
        spec["nodeName"] = on
    meta = {"name": name, "namespace": rng.choice(tuple(NAMESPACES)), "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def container(rng: Random, name: str) -> Json:
    amounts = {}
    if chance(rng, 0.7):
        amounts["cpu"] = rng.choice(("100m", "0.3", "1", "333m", "1200m"))
    if chance(rng, 0.6):
        amounts["memory"] = rng.choice(("100Mi", "512Mi", "1G", "1e9", "0.5Gi"))
    limits = {}
    if chance(rng, 0.08):
        limits[GPU] = amounts[GPU] = rng.choice(("1", "2"))
    found: Json = {"name": name, "image": "any"}
    found["resources"] = {"requests": amounts, "limits": limits}
    if chance(rng, 0.25):
        found["ports"] = [port(rng, name)]
    if chance(rng, 0.05):
        exits = {"operator": "In", "values": [42]}
        found["restartPolicy"] = "Never"
        found["restartPolicyRules"] = [{"action": "RestartAllContainers", "exitCodes": exits}]
    return found


def volume(rng: Random, name: str) -> Json:
    """An inline disk; few of them, so that pods meet at one."""
    read_only = chance(rng, 0.5)
    match rng.choice(("gce", "aws", "rbd", "iscsi", "none")):
        case "gce":
            disk = {"pdName": rng.choice(("a", "b")), "readOnly": read_only}
            return {"name": name, "gcePersistentDisk": disk}
        case "aws":
            disk = {"volumeID": rng.choice(("a", "b")), "readOnly": read_only}
            return {"name": name, "awsElasticBlockStore": disk}
        case "rbd":
            rbd: Json = {
                "monitors": rng.sample(("m1", "m2", "m3"), rng.choice((1, 2))),
                "image": rng.choice(("a", "b")),
                "readOnly": read_only,
            }
            pool = {"pool": rng.choice(("rbd", "other"))} if chance(rng, 0.5) else {}
            return {"name": name, "rbd": rbd | pool}
        case "iscsi":
            iscsi = {"targetPortal": rng.choice(("10.0.0.1", "10.0.0.2")), "lun": rng.randint(0, 1)}
            iqn = rng.choice(("iqn.2001-04.com.example:a", "iqn.2001-04.com.example:b"))
            return {"name": name, "iscsi": iscsi | {"iqn": iqn, "readOnly": read_only}}
        case _:
            return {"name": name, "emptyDir": {}}


def port(rng: Random, name: str) -> Json:
    # Each container has a number of its own: no pod may ask for one port twice.
    found: Json = {"containerPort": 80, "hostPort": 8000 + int(name[-1])}
    if chance(rng, 0.5):
        found["hostIP"] = rng.choice(("127.0.0.1", "127.0.0.2", "0.0.0.0"))
    if chance(rng, 0.3):
        found["protocol"] = "UDP"
    return found


def init(rng: Random, name: str) -> Json:
    found = container(rng, name)
    found.pop("ports", None)
    if chance(rng, 0.5):
        # The API server wants no rules for what is always restarted.
        found.pop("restartPolicyRules", None)
        found["restartPolicy"] = "Always"
    return found


def toleration(rng: Random) -> Json:
    found: Json = {}
    if chance(rng, 0.2):
        found["operator"] = "Exists"
    else:
        found["key"] = rng.choice(("k", "l", "node.kubernetes.io/unschedulable"))
        found["operator"] = rng.choice(("Exists", "Equal"))
        if found["operator"] == "Equal":
            found["value"] = rng.choice(("", "v", "w"))
    if chance(rng, 0.6):
        found["effect"] = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return found


def affinity(rng: Random) -> Json:
    found: Json = {}
    if chance(rng, 0.25):
        terms = [node_term(rng) for _ in range(rng.choice((1, 2)))]
        found["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    if chance(rng, 0.35):
        found["podAffinity"] = {REQUIRED: [pod_term(rng) for _ in range(rng.choice((1, 1, 2)))]}
    if chance(rng, 0.5):
        found["podAntiAffinity"] = {REQUIRED: [pod_term(rng) for _ in range(rng.choice((1, 2)))]}
    return found


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node_term(rng: Random) -> Json:
    found: Json = {"matchExpressions": [node_expression(rng) for _ in range(rng.choice((1, 2)))]}
    if chance(rng, 0.2):
        name = f"node-{rng.randint(0, 5)}"
        operator = rng.choice(("In", "NotIn"))
        found["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
        if chance(rng, 0.5):
            del found["matchExpressions"]
    return found


def node_expression(rng: Random) -> Json:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "size", "operator": operator, "values": [rng.choice(("1", "5", "7"))]}
    found: Json = {"key": rng.choice((ZONE, RACK, "none")), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = rng.sample(("a", "b", "1", "2"), rng.choice((1, 2)))
    return found


def selector(rng: Random) -> Json:
    found: Json = {}
    if chance(rng, 0.6):
        found["matchLabels"] = {rng.choice(KEYS): rng.choice(VALUES)}
    if chance(rng, 0.4):
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        expression: Json = {"key": rng.choice(KEYS), "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = [rng.choice(VALUES)]
        found["matchExpressions"] = [expression]
    return found


def pod_term(rng: Random) -> Json:
    found: Json = {"topologyKey": rng.choice(TOPOLOGIES)}
    if chance(rng, 0.95):
        found["labelSelector"] = selector(rng)
    if chance(rng, 0.2):
        found["namespaces"] = rng.sample(tuple(NAMESPACES), rng.choice((1, 2)))
    if chance(rng, 0.3):
        found["namespaceSelector"] = rng.choice(
            (
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
            )
        )
    if chance(rng, 0.2):
        add_label_keys(rng, found, ("matchLabelKeys", "mismatchLabelKeys"))
    return found


def spreads(rng: Random, labels: dict[str, str]) -> list[Json]:
    return [spread(rng, key, labels) for key in rng.sample(TOPOLOGIES, rng.choice((1, 1, 2)))]


def spread(rng: Random, key: str, labels: dict[str, str]) -> Json:
    found: Json = {
        "topologyKey": key,
        "maxSkew": rng.choice((1, 1, 2)),
        "whenUnsatisfiable": "DoNotSchedule",
    }
    if chance(rng, 0.95):
        own = labels and chance(rng, 0.5)
        found["labelSelector"] = {"matchLabels": dict(labels)} if own else selector(rng)
    if chance(rng, 0.3):
        found["minDomains"] = rng.choice((1, 2, 4))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if chance(rng, 0.4):
            found[policy] = rng.choice(("Honor", "Ignore"))
    if chance(rng, 0.2):
        add_label_keys(rng, found, ("matchLabelKeys",))
    return found


def add_label_keys(rng: Random, found: Json, fields: tuple[str, ...]) -> None:
    """A key may be in the selector or in one of these lists, not in two."""
    if "labelSelector" not in found:
        return
    written = found["labelSelector"]
    taken = {one["key"] for one in written.get("matchExpressions", [])}
    free = [key for key in KEYS if key not in taken | written.get("matchLabels", {}).keys()]
    if free:
        found[rng.choice(fields)] = [rng.choice(free)]


def table_of(nodes: list[Json], placed: list[Json]) -> tuple[NodeTable, Rows]:
    rows = Rows()
    table = NodeTable(rows)
    for name, labels in NAMESPACES.items():
        table.set_namespace(
            msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        )
    for one in nodes:
        table.set_node(a_node(one))
    for one in placed:
        table.add_pod(a_pod(one))
    return table, rows


def a_node(node: Json) -> Node:
    return msgspec.convert(node, Node)


def a_pod(pod: Json) -> Pod:
    """Its uid is its name, unless it has one."""
    meta = pod["metadata"]
    return msgspec.convert({**pod, "metadata": {"uid": meta["name"], **meta}}, Pod)
