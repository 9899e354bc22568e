"""A mirror of clusters in memory: registered as users register them, followed as real ones are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from dovetail.intents.fleet import ClusterInventory, FleetSnapshot
from dovetail.kube.api.access import BadKubeconfig
from dovetail.kube.api.port import KubeApi
from dovetail.kube.mirror.mirror import Mirror
from dovetail.kube.mirror.snapshots import snapshot_of
from dovetail.kube.mirror.timings import MirrorTimings
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.intents import objects
from dovetail.ledger.intents.clusters import ClusterAccess, document_path
from dovetail.podfit.objects import Node, Pod
from dovetail.service.intents.cluster_hook import ClusterHook
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.ports import KeptObject
from tests.support.kube.memory import MemoryApi

HOOK = ClusterHook(snapshot_of)
QUICK = MirrorTimings(
    registrations_seconds=0.05,
    batch_seconds=0.02,
    probe_seconds=0.05,
    probe_deadline_seconds=0.2,
    away_seconds=0.3,
    report_seconds=0.05,
    optional_seconds=0.1,
    new_nodes_seconds=0.05,
    policies_seconds=0.1,
    sweep_seconds=0.1,
    first_retry_seconds=0.01,
    longest_retry_seconds=0.1,
)
WITHIN_SECONDS = 30.0


async def write(ledger: Ledger, operation: Operation[T]) -> T:
    return await asyncio.wrap_future(ledger.write(operation))


def register(
    tx: Transaction, cluster: str, kubeconfig: bytes | None, spec: Mapping[str, Any] | None = None
) -> None:
    """As a PUT of the document does, whether it is there or not."""
    path = document_path(cluster)
    above = path.split("/clusters/")[0]
    document = {"metadata": {"name": path.rpartition("/")[2]}, "spec": dict(spec or {})}
    if objects.find(tx, above, "cluster-provider") is None:
        objects.add(tx, above, None, "cluster-provider", "{}")
    if objects.find(tx, path, "cluster") is None:
        objects.add(tx, path, above, "cluster", json.dumps(document))
    else:
        objects.change(tx, path, json.dumps(document))
    files = {} if kubeconfig is None else {"kubeconfig": kubeconfig}
    if files:
        objects.put_files(tx, path, files)
    HOOK.kept(tx, KeptObject(path=path, kind="cluster", document=document, files=files))


def drop(tx: Transaction, cluster: str) -> None:
    path = document_path(cluster)
    HOOK.dropping(tx, path)
    objects.remove(tx, path)


class Rig:
    """Clusters by their kubeconfigs, a ledger, and a mirror that runs."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.servers: dict[bytes, MemoryApi] = {}
        self.fleet = FleetKeeper(ledger)
        self.timings = QUICK

    def server(self, kubeconfig: bytes) -> MemoryApi:
        return self.servers.setdefault(kubeconfig, MemoryApi())

    @asynccontextmanager
    async def connect(self, access: ClusterAccess) -> AsyncIterator[KubeApi]:
        if access.kubeconfig not in self.servers:
            raise BadKubeconfig("kubeconfig: it has not the form of one")
        yield self.servers[access.kubeconfig]

    @asynccontextmanager
    async def running(
        self, fence: Callable[[Operation[None]], Operation[None]] = lambda each: each
    ) -> AsyncIterator[None]:
        mirror = Mirror(self.ledger, self.connect, fence=fence, timings=self.timings)
        task = asyncio.create_task(mirror.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def register(self, cluster: str, kubeconfig: bytes | None, **spec: Any) -> None:
        await write(self.ledger, lambda tx: register(tx, cluster, kubeconfig, spec))

    async def drop(self, cluster: str) -> None:
        await write(self.ledger, lambda tx: drop(tx, cluster))

    async def seen(
        self, cluster: str, holds: Callable[[ClusterInventory], bool]
    ) -> ClusterInventory:
        """The cluster, once it is so."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while True:
                found = (await self.fleet.fresh()).clusters.get(cluster)
                if found is not None and holds(found):
                    return found
                await asyncio.sleep(0.02)

    async def snapshot(self) -> FleetSnapshot:
        return await self.fleet.fresh()


def node_body(name: str, cpu: str = "8", **more: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110", **more.pop("amounts", {})}
    meta = {"name": name, "labels": more.pop("labels", {}), **more}
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"metadata": meta, "status": status}


def pod_body(name: str, node: str = "", cpu: str = "1", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    }
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {"name": name, "namespace": "default", **more},
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


async def add_node(api: MemoryApi, name: str, cpu: str = "8", **more: Any) -> None:
    await api.create(Node, node_body(name, cpu, **more))


async def add_pod(api: MemoryApi, name: str, node: str, cpu: str = "1", **more: Any) -> None:
    await api.create(Pod, pod_body(name, node, cpu, **more))


def told(cluster: ClusterInventory) -> dict[str, tuple[list[str], int]]:
    """By node: names of pods, and thousandths of CPUs that are held."""
    return {
        each.node.metadata.name: (
            sorted(pod.metadata.name for pod in each.pods),
            each.held.get("cpu", 0),
        )
        for each in cluster.nodes
    }


def without_ages(cluster: ClusterInventory) -> ClusterInventory:
    return msgspec.structs.replace(cluster, observed_at=0, version=0)
