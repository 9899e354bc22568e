"""Small random clusters and sets of pods, made so that it is often a near thing."""

from __future__ import annotations

from random import Random

from tests.podfit.building import Fleet, Json, node, pod
from tests.podfit.packing.brute import Kinds

GPU = "example.com/gpu"
ZONE = "example.com/zone"
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
        pod(f"there-{at}", on=rng.choice(made).metadata.name, requests={"cpu": "500m"})
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
