"""The HPA controller on a large fleet of few shapes: all apps packed on nodes, then picked."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from time import process_time
from typing import Any

import msgspec
import orjson

from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.expanding import candidates_document
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.fleet import ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.group import (
    AllocatableRequirement,
    DeploymentGroup,
    GroupApp,
    HpaIntent,
    ResourceConsumer,
)
from dovetail.intents.hpa.answer import hpa_answer
from dovetail.podfit.objects import Node, Pod

NODES, SHAPES, PODS_ON_NODE = 10, 50, 8
HEADING = f"HPA controller: clusters of {NODES} nodes with {PODS_ON_NODE} pods each"
Row = tuple[str, ...]
COLUMNS = (
    "fleet",
    "clusters",
    "apps",
    "shapes",
    "packed",
    "combined, picked",
    "contended",
    "refused",
    "size",
    "digest",
)
GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def rows(clusters: int, apps: int) -> Iterator[Row]:
    """Roomy: most clusters take every app. Tight: most take some of them."""
    for name, free in (("roomy", 16), ("tight", 3)):
        yield measured(name, fleet_of(clusters, free), group_of(apps))


def measured(name: str, fleet: FleetSnapshot, group: DeploymentGroup) -> Row:
    names = [each.name for each in group.apps]
    digests, packing, picking, size = set(), [], [], 0
    for _ in range(2):
        begun = process_time()
        found = hpa_answer(group, fleet)
        packed = process_time()
        combined = combine([found.answer], names, list(fleet.clusters))
        picked = pick(combined, found.score_of_set)
        packing.append(packed - begun)
        picking.append(process_time() - packed)
        document = orjson.dumps(candidates_document(combined), option=orjson.OPT_SORT_KEYS)
        shown = repr(picked.clusters) if isinstance(picked, Pick) else picked.words
        digests.add(hashlib.sha256(document + shown.encode()).hexdigest())
        size = len(document)
    refused = sum(len(each) for each in found.answer.refusals.values())
    contended = len(found.answer.candidates.contended)  # type: ignore[union-attr]
    return (
        name,
        f"{len(fleet.clusters):,}",
        str(len(names)),
        str(found.shapes),
        f"{min(packing):.1f} s",
        f"{min(picking):.2f} s",
        f"{contended:,}",
        f"{refused:,}",
        f"{size / 1e3:.1f} kB",
        min(digests)[:12] if len(digests) == 1 else "DIFFERENT",
    )


def fleet_of(clusters: int, free: int) -> FleetSnapshot:
    """Nodes have from half as many CPUs free to twice as many."""
    draw = random.Random(13)
    shapes = [
        [(draw.randint(free // 2 or 1, 2 * free), draw.choice((0, 0, 1))) for _ in range(NODES)]
        for _ in range(SHAPES)
    ]
    found = [cluster_of(f"p1+c{at:05}", shapes[at % SHAPES]) for at in range(clusters)]
    return FleetSnapshot(clusters={each.name: each for each in found}, taken_at=0)


def cluster_of(name: str, nodes: Sequence[tuple[int, int]]) -> ClusterInventory:
    short = name.removeprefix("p1+")
    return ClusterInventory(
        name=name,
        nodes=tuple(node_of(f"{short}-n{at}", *each) for at, each in enumerate(nodes)),
    )


def node_of(name: str, cpus: int, gpus: int) -> ClusterNode:
    has = {
        "cpu": f"{1000 * cpus + 100 * PODS_ON_NODE}m",
        "memory": "256Gi",
        "pods": "110",
        GPU: str(gpus),
    }
    node = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return ClusterNode(
        node=msgspec.convert(node, Node),
        pods=tuple(pod_on(name, at) for at in range(PODS_ON_NODE)),
    )


def pod_on(node: str, at: int) -> Pod:
    requests = {"cpu": "100m", "memory": f"{128 + at}Mi"}
    document = {
        "metadata": {"name": f"p{at}", "namespace": "system", "uid": f"{node}/{at}"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
    }
    return msgspec.convert(document, Pod)


def group_of(apps: int) -> DeploymentGroup:
    """Each has a large and a small workload; every third one would like a GPU."""
    draw = random.Random(7)
    names = [f"app-{at:02}" for at in range(apps)]
    return DeploymentGroup(
        name="g",
        apps=tuple(
            GroupApp(name=name, objects=(workload(f"{name}-core"), workload(f"{name}-api")))
            for name in names
        ),
        hpa=tuple(
            HpaIntent(
                name=f"{name}-hpa",
                app=name,
                consumers=(
                    consumer(f"{name}-core", draw.randint(1, 4), weight=at % 10 + 1, gpus=at % 3),
                    consumer(f"{name}-api", 1),
                ),
            )
            for at, name in enumerate(names)
        ),
    )


def workload(name: str) -> Json:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }


def consumer(name: str, cpus: int, *, weight: int = 1, gpus: int = 1) -> ResourceConsumer:
    """No GPU unless `gpus` is 0."""
    found = [
        AllocatableRequirement(name="cpu", resource="cpu", requests=Fraction(cpus)),
        AllocatableRequirement(name="memory", resource="memory", requests=Fraction(10**9)),
    ]
    if not gpus:
        found.append(
            AllocatableRequirement(
                name="gpu", resource=GPU, requests=Fraction(1), mandatory=False, weight=weight
            )
        )
    return ResourceConsumer(
        name=name,
        kind="Deployment",
        object_name=name,
        container="main",
        requirements=tuple(found),
    )
