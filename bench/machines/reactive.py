"""The reactive hand-over of a unit, to compare with: the scheme of Imperator in Go, for one type.

Nothing is gated there. A guest fails to be scheduled once; the controller counts it as waiting and
lowers the replicas of the stock; the StatefulSet deletes its highest ordinal, which, being `sleep`
as process 1, sits out the default grace of 30 s; and the guest fits when it is tried again. The
real scheduler, StatefulSet controller and API server play their parts, kwok the kubelets; only the
controller is written anew here. In two things it is faster than the one in Go: it counts without a
round trip through its status, and its stock is managed in parallel, so that guests who come at the
same time do not wait for one another's grace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.support.kube.cluster import Cluster

from dovetail.aio.supervise import run_together
from dovetail.kube.api.client import connect
from dovetail.kube.api.port import KubeApi
from dovetail.kube.runtime.informer import Informer
from dovetail.podfit.objects import Pod, StatefulSet

ROLE, SLEEPER, GUEST = "bench/role", "sleeper", "guest"
POOL = {"bench/pool": "reactive"}
NAMESPACE = "reactive"
STOCK = "stock"
CPU, MEMORY = "4", "8Gi"
UNIT = {"cpu": CPU, "memory": MEMORY}
LONGEST_SECONDS = 120.0


async def measure(cluster: Cluster, guests: int) -> list[float]:
    """Seconds from creation to running of so many guests, one for each unit, all at once.

    The cluster has its scheduler, its controllers and kwok; nodes and a namespace are added.
    """
    cluster.make_namespace(NAMESPACE)
    cluster.add_nodes(guests, prefix="reactive", labels=POOL, cpu=CPU, memory=MEMORY)
    cluster.apply(stateful_set(guests))
    async with connect(str(cluster.kubeconfig)) as api:
        pods = Informer(api, Pod, NAMESPACE)
        seconds: list[float] = []

        async def hand_over() -> None:
            await until(pods, lambda: len(running(pods, SLEEPER)) == guests)
            names = [f"guest-{number}" for number in range(guests)]
            seconds.extend(await asyncio.gather(*(bought(api, pods, name) for name in names)))

        async with asyncio.timeout(LONGEST_SECONDS):
            await run_together(pods.run(), follow(api, pods, guests), hand_over())
    cluster.drop_namespace(NAMESPACE)
    return seconds


async def follow(api: KubeApi, pods: Informer[Pod], maximum: int) -> None:
    """Replicas are what is left of the stock when guests are taken off it, until cancelled."""
    written = maximum
    changed = asyncio.Event()
    pods.on(lambda *_: changed.set())
    while True:
        await changed.wait()
        changed.clear()
        replicas = max(0, maximum - taken(pods.store.values()))
        if replicas != written:
            body = {"spec": {"replicas": replicas}}
            await api.merge(StatefulSet, STOCK, body, namespace=NAMESPACE)
            written = replicas


def taken(pods: Iterable[Pod]) -> int:
    """Guests that run or wait, and sleepers that found no room."""
    return sum(
        1
        for pod in pods
        if pod.metadata.deletion_timestamp is None
        and (is_unschedulable(pod) or (is_guest(pod) and pod.spec.node_name))
    )


def is_guest(pod: Pod) -> bool:
    return pod.metadata.labels.get(ROLE) == GUEST


def is_unschedulable(pod: Pod) -> bool:
    return any(
        each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions
    )


async def bought(api: KubeApi, pods: Informer[Pod], name: str) -> float:
    """Seconds that it took."""
    began = time.perf_counter()
    body = {"metadata": {"name": name, "labels": {ROLE: GUEST}}, "spec": pod_spec()}
    await api.create(Pod, body, namespace=NAMESPACE)
    key = f"{NAMESPACE}/{name}"
    await until(pods, lambda: key in running(pods, GUEST))
    return time.perf_counter() - began


def running(pods: Informer[Pod], role: str) -> set[str]:
    return {
        key
        for key, pod in pods.store.items()
        if pod.metadata.labels.get(ROLE) == role and pod.status.phase == "Running"
    }


async def until(pods: Informer[Pod], holds: Callable[[], bool]) -> None:
    found = asyncio.Event()
    pods.on(lambda *_: found.set() if holds() else None)
    await found.wait()


def stateful_set(replicas: int) -> dict[str, Any]:
    labels = {ROLE: SLEEPER}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": STOCK, "namespace": NAMESPACE},
        "spec": {
            "serviceName": STOCK,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    }


def pod_spec() -> dict[str, Any]:
    """Of sleepers and guests alike: a whole node of the pool."""
    container = {
        "name": "main",
        "image": "alpine:3.15.0",
        "command": ["sleep", "infinity"],
        "resources": {"requests": UNIT, "limits": UNIT},
    }
    return {"containers": [container], "nodeSelector": POOL}
