"""Pods bound per second on a real API server: Dovetail beside kube-scheduler, in the same run.

Both get the same cluster (1,000 nodes that kwok plays) and as many pods, waiting before they start.
kube-scheduler's pods ask for one of an ordinary extended resource, Dovetail's for one device of a
class, which is found, claimed in the ledger on disk, annotated and bound. Counted from the first
pod bound to the last, as a watch sees them; the rounds alternate, since the machine's speed varies.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from tests.support.kube.cluster import Cluster
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

from dovetail.kube import manifests
from dovetail.kube.api.client import connect
from dovetail.kube.classes.node_annotation import DEVICES
from dovetail.kube.runtime.informer import Informer
from dovetail.podfit.objects import Pod

from ..report import progress

NODES = 1_000
PODS = 2_000
ROUNDS = 2
DEVICES_PER_NODE = 8
ANNOTATED = tuple({"name": f"gpu-{n}", "kind": "gpu"} for n in range(DEVICES_PER_NODE))
TOGETHER = 500
RESOURCE = "example.com/gpu"
CLASS = "resourceclass.dovetail.dev/gpu"

KUBE, OURS = "kube-scheduler", "dovetail scheduler"

MakePod = Callable[[str, str, str], Mapping[str, Any]]
"""Of a name, in a namespace, for a scheduler."""


class Bound(msgspec.Struct):
    """Pods per second, round by round."""

    nodes: int
    pods: int
    rates: dict[str, list[float]]


def measure(nodes: int = NODES, pods: int = PODS, rounds: int = ROUNDS) -> Bound:
    found = Bound(nodes, pods, {KUBE: [], OURS: []})
    with tempfile.TemporaryDirectory() as directory, Cluster.running(Path(directory)) as cluster:
        prepare(cluster, nodes)
        for number in range(rounds):
            for name, schedule in ((KUBE, by_kube_scheduler), (OURS, by_dovetail)):
                namespace = f"{name.split()[0]}-{number}"
                create_pods(cluster, namespace, name, pods)
                rate = uvloop.run(bound(cluster, namespace, pods, schedule))
                progress(f"  {name}: {rate:.0f} pods/s")
                found.rates[name].append(rate)
                cluster.kubectl("delete", "namespace", namespace, "--timeout=120s")
    return found


def prepare(cluster: Cluster, nodes: int, devices: Sequence[Mapping[str, str]] = ANNOTATED) -> None:
    cluster.start_controllers()
    cluster.start_kwok(grace=False)
    cluster.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(["crds"]))
    cluster.make_namespace("dovetail")
    expression = {"key": "Kind", "operator": "In", "values": ["gpu"]}
    cluster.apply(
        {
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": "ResourceClass",
            "metadata": {"name": "gpu"},
            "spec": {"resourceSelector": [{"matchExpressions": [expression]}]},
        }
    )
    progress(f"{nodes:,} nodes")
    for first in range(0, nodes, TOGETHER):
        cluster.add_nodes(
            min(TOGETHER, nodes - first),
            first=first,
            more={RESOURCE: str(DEVICES_PER_NODE)},
            annotations={DEVICES: json.dumps(devices)} if devices else {},
        )


def create_pods(
    cluster: Cluster, namespace: str, scheduler: str, count: int, make: MakePod | None = None
) -> None:
    """In a namespace of their own; `make` makes one of them, or else `pod`."""
    if make is None:
        cluster.make_namespace(namespace)
    for first in range(0, count, TOGETHER):
        items = [
            (make or pod)(f"pod-{number}", namespace, scheduler)
            for number in range(first, min(first + TOGETHER, count))
        ]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        cluster.kubectl("create", "-f", "-", given=listed)


def pod(name: str, namespace: str, scheduler: str) -> Mapping[str, Any]:
    resource = RESOURCE if scheduler == KUBE else CLASS
    amounts = {"cpu": "100m", "memory": "64Mi", resource: "1"}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "main", "image": "any", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": "default-scheduler" if scheduler == KUBE else "dovetail",
            "containers": [container],
        },
    }


async def bound(
    cluster: Cluster, namespace: str, count: int, schedule: Callable[[Cluster], Any]
) -> float:
    """Per second, from the first to the last."""
    times: list[float] = []
    done = asyncio.Event()

    def see(old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name and not (old and old.spec.node_name):
            times.append(time.perf_counter())
            if len(times) == count:
                done.set()

    async with connect(str(cluster.kubeconfig)) as api:
        informer = Informer(api, Pod, namespace)
        informer.on(see)
        watching = asyncio.create_task(informer.run())
        await informer.synced()
        with schedule(cluster):
            await asyncio.wait_for(done.wait(), 600)
        watching.cancel()
    return (count - 1) / (times[-1] - times[0])


@contextmanager
def by_kube_scheduler(cluster: Cluster) -> Iterator[None]:
    cluster.start_scheduler()
    yield
    cluster.stop_other("kube-scheduler")


@contextmanager
def by_dovetail(cluster: Cluster) -> Iterator[None]:
    database = f"sqlite:///{cluster.directory}/ledger.db"
    command: list[str | Path] = [DOVETAIL, "scheduler", "--database", database]
    command += ["--kubeconfig", cluster.kubeconfig, "--lease-seconds", "3"]
    with Process(command, cluster.directory / "dovetail-scheduler.log"):
        yield
