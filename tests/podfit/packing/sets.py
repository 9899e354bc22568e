"""Small random clusters and sets of pods, made so that it is often a near thing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.podfit.building import REQUIRED, Fleet, Json, node, pod
from tests.podfit.packing.brute import Kinds

GPU = "example.com/gpu"
ZONE = "example.com/zone"
TOPOLOGIES = (ZONE, "kubernetes.io/hostname")
LABELS: tuple[dict[str, str], ...] = ({"app": "x"}, {"app": "y"}, {"app": "x", "tier": "t"}, {})
MOST_PODS = 6


def fleet(rng: Random, nodes: int = 4) -> Fleet:
    made = []
    for at in range(rng.randint(1, nodes)):
        amounts = {
            "cpu": rng.choice(("2", "3", "4")),
            "memory": rng.choice(("3Gi", "4Gi")),
            "pods": rng.choice(("2", "3", "9")),
        }
        if rng.random() < 0.4:
            amounts["example.com__gpu"] = rng.choice(("1", "2"))
        labels = {"size": rng.choice(("s", "l")), ZONE: rng.choice(("a", "b"))}
        if rng.random() < 0.2:
            del labels[ZONE]
        taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
        made.append(node(f"n{at}", labels, taints=taints, unschedulable=False, **amounts))
    there = [
        pod(
            f"there-{at}",
            rng.choice(LABELS),
            on=rng.choice(made).metadata.name,
            requests={"cpu": "500m"},
            **(apart(rng) if rng.random() < 0.2 else {}),
        )
        for at in range(rng.choice((0, 0, 1, 2)))
    ]
    return Fleet(made, there)


def amounts(rng: Random) -> dict[str, str]:
    found = {"cpu": rng.choice(("500m", "1", "1500m", "2"))}
    if rng.random() < 0.6:
        found["memory"] = rng.choice(("512Mi", "1Gi", "2Gi"))
    if rng.random() < 0.2:
        found[GPU] = rng.choice(("1", "2"))
    return found


def kinds_by_amounts(rng: Random) -> Kinds:
    """Told apart by amounts, selectors and tolerations alone."""
    found = []
    left = MOST_PODS
    for at in range(rng.randint(1, 3)):
        spec: Json = {}
        if rng.random() < 0.3:
            spec["nodeSelector"] = {"size": rng.choice(("s", "l"))}
        if rng.random() < 0.3:
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        count = rng.randint(0, min(left, 4))
        left -= count
        found.append((pod(f"kind-{at}", requests=amounts(rng), **spec), count))
    return found


def selector(rng: Random) -> Json:
    return rng.choice(
        (
            {"matchLabels": {"app": "x"}},
            {"matchLabels": {"app": "x"}},
            {"matchLabels": {"app": "y"}},
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            {"matchLabels": {"tier": "t"}},
            {},
        )
    )


def pod_terms(rng: Random) -> Json:
    terms = [
        {"labelSelector": selector(rng), "topologyKey": rng.choice(TOPOLOGIES)}
        for _ in range(rng.choice((1, 1, 2)))
    ]
    return {REQUIRED: terms}


def apart(rng: Random) -> Json:
    return {"affinity": {"podAntiAffinity": pod_terms(rng)}}


def near(rng: Random) -> Json:
    return {"affinity": {"podAffinity": pod_terms(rng)}}


def spread(rng: Random) -> Json:
    return {
        "topologySpreadConstraints": [
            {
                "topologyKey": key,
                "maxSkew": rng.choice((1, 1, 2)),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector(rng),
                "minDomains": rng.choice((1, 1, 3)),
                "nodeAffinityPolicy": rng.choice(("Honor", "Ignore")),
                "nodeTaintsPolicy": rng.choice(("Honor", "Ignore")),
            }
            for key in rng.sample(TOPOLOGIES, rng.choice((1, 1, 2)))
        ]
    }


def host_ports(rng: Random) -> Json:
    ports = [{"hostPort": 8000 + rng.choice((0, 1)), "protocol": rng.choice(("TCP", "UDP"))}]
    container = {"name": "main", "ports": ports, "resources": {"requests": {"cpu": "500m"}}}
    return {"containers": [container]}


def disks(rng: Random) -> Json:
    disk = {"pdName": rng.choice(("a", "b")), "readOnly": rng.random() < 0.5}
    return {"volumes": [{"name": "v", "gcePersistentDisk": disk}]}


DEMANDS: dict[str, Callable[[Random], Json]] = {
    "apart": apart,
    "near": near,
    "spread": spread,
    "ports": host_ports,
    "disks": disks,
}


def kinds_with(rng: Random, *demands: str) -> Kinds:
    """Pods that demand something of each other, or of pods that are there."""
    found = []
    left = MOST_PODS
    for at in range(rng.randint(1, 3)):
        spec: Json = {}
        for each in demands:
            if rng.random() < 0.6:
                made = DEMANDS[each](rng)
                affinity = {**spec.get("affinity", {}), **made.get("affinity", {})}
                spec |= made
                if affinity:
                    spec["affinity"] = affinity
        if rng.random() < 0.2:
            spec["nodeSelector"] = {"size": rng.choice(("s", "l"))}
        if rng.random() < 0.2:
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        count = rng.randint(0, min(left, 4))
        left -= count
        little = {"cpu": rng.choice(("250m", "500m", "1"))}
        one = pod(f"kind-{at}", rng.choice(LABELS), requests=little, **spec)
        found.append((one, count))
    return found
