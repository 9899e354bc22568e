"""The mirror of many clusters: what it costs to follow pods that come and go.

The clusters are API servers in memory that answer with JSON text, decoded as the client does; so
all is measured that the mirror does but the sockets. Everything follows from the seed.
"""

from __future__ import annotations

import asyncio
import random
import resource
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from dovetail.intents.fleet import ClusterHealth
from dovetail.kube.api.client import ListPage, decoded
from dovetail.kube.api.port import ApiNotFound, Body, Listing, WatchEvent
from dovetail.kube.mirror.mirror import Mirror
from dovetail.kube.mirror.timings import MirrorTimings
from dovetail.ledger import Ledger, Transaction, opened
from dovetail.ledger.intents import clusters, objects
from dovetail.ledger.intents.clusters import ClusterAccess, ClusterSource, document_path
from dovetail.podfit.objects import KubeObject
from dovetail.service.intents.fleet import FleetKeeper

CLUSTERS, NODES, PODS_PER_NODE = 50, 200, 10
PODS_PER_SECOND = 2
"""That come in a cluster, and as many that go."""
TRAFFIC_SECONDS = 20
HEADING = (
    f"{CLUSTERS} clusters of {NODES} nodes, {PODS_PER_SECOND} pods a second come and go in each"
)
EVENTS_OF_A_POD = 6
"""Made, bound, running; deleted, ended, gone."""
TEMPLATES = 50
"""Deployments, and so kinds of pods that are alike, in all clusters."""
HEARTBEAT_SECONDS = 300
"""Between two statuses of a node in which nothing changes."""

Json = dict[str, Any]
T = TypeVar("T", bound=KubeObject)


@dataclass(slots=True)
class MirrorCost:
    """What was measured."""

    sync_seconds: float = 0.0
    sync_processor_seconds: float = 0.0
    events: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    changes: int = 0
    """Rows of the change log: nodes written."""
    look_seconds: list[float] = field(default_factory=list)
    """Of a planner's look at all clusters once a second, while there is traffic."""
    resident_bytes: int = 0
    ledger_bytes: int = 0
    is_right: bool = False


@dataclass(slots=True)
class PodState:
    """A pod in few bytes: what it is written as follows from this."""

    name: str
    template: int
    version: int = 0
    node: str = ""
    phase: str = "Pending"
    is_deleted: bool = False

    def text(self) -> bytes:
        return orjson.dumps(pod_body(self))


class ApiServer:
    """A cluster whose pods come and go: list and watch, in JSON text."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._version = 1
        self._number = 0
        self._node_names = [f"node-{number:03}" for number in range(NODES)]
        self.pods: dict[str, PodState] = {}
        self._names: list[str] = []
        """Of the pods, and of some that are gone: to choose from."""
        self._watches: dict[str, asyncio.Queue[tuple[str, int, bytes]]] = {}
        self.events = 0
        for _ in range(NODES * PODS_PER_NODE):
            for _ in self._arrival():
                pass

    # -- traffic -----------------------------------------------------------------------------------

    def beat(self) -> None:
        """A status of a node, with nothing new but its version."""
        self._send("nodes", "MODIFIED", node_text(self._random.choice(self._node_names)))

    def traffic(self) -> Iterator[None]:
        """A pod comes, and another goes, an event at a time."""
        yield from self._arrival()
        yield from self._departure()

    def _arrival(self) -> Iterator[None]:
        self._number += 1
        pod = PodState(f"web-{self._number}", self._random.randrange(TEMPLATES))
        self.pods[pod.name] = pod
        self._names.append(pod.name)
        self._tell("ADDED", pod)
        yield
        pod.node = self._random.choice(self._node_names)
        self._tell("MODIFIED", pod)
        yield
        pod.phase = "Running"
        self._tell("MODIFIED", pod)
        yield

    def _departure(self) -> Iterator[None]:
        pod = None
        while pod is None:
            at = self._random.randrange(len(self._names))
            self._names[at], self._names[-1] = self._names[-1], self._names[at]
            pod = self.pods.get(self._names.pop())
        pod.is_deleted = True
        self._tell("MODIFIED", pod)
        yield
        pod.phase = "Succeeded"
        self._tell("MODIFIED", pod)
        yield
        del self.pods[pod.name]
        self._tell("DELETED", pod)
        yield

    def _tell(self, type_: str, pod: PodState) -> None:
        pod.version = self._version + 1
        self._send("pods", type_, pod.text() if "pods" in self._watches else b"")

    def _send(self, plural: str, type_: str, text: bytes) -> None:
        self._version += 1
        self.events += 1
        if plural in self._watches:
            self._watches[plural].put_nowait((type_, self._version, text))

    def _texts(self, plural: str) -> list[bytes]:
        if plural == "nodes":
            return [node_text(name) for name in self._node_names]
        return [each.text() for each in self.pods.values()]

    # -- the port ----------------------------------------------------------------------------------

    async def list(self, kind: type[T], *, fields: str = "", **_: Any) -> Listing[T]:
        if kind.API.plural not in ("nodes", "pods"):
            raise ApiNotFound(404, "NotFound", "the server could not find the requested resource")
        items = b",".join([] if fields else self._texts(kind.API.plural))
        text = b'{"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (self._version, items)
        page = decoded(ListPage[kind], text)  # type: ignore[valid-type]
        return Listing(page.items or [], page.metadata.resource_version)

    async def watch(
        self,
        kind: type[T],
        version: str,  # noqa: ARG002 - nothing happens between the list and the watch
        **_: Any,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        inbox = self._watches[kind.API.plural] = asyncio.Queue()
        while True:
            type_, at, text = await inbox.get()
            yield WatchEvent(type_, str(at), decoded(kind, text))

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        raise ApiNotFound(404, "NotFound", f"{kind.__name__} {namespace}/{name}")

    async def create(self, kind: type[T], body: Body, **_: Any) -> T | None:
        raise NotImplementedError

    async def replace(self, kind: type[T], body: Body, **_: Any) -> T:
        raise NotImplementedError

    async def apply(self, kind: type[T], body: Body, **_: Any) -> T:
        raise NotImplementedError

    async def merge(self, kind: type[T], name: str, body: Body, **_: Any) -> T:
        raise NotImplementedError

    async def delete(self, kind: type[T], name: str, namespace: str = "", **_: Any) -> None:
        raise NotImplementedError


def node_text(name: str) -> bytes:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    labels = {f"feature.node.kubernetes.io/cpu-{n}": "true" for n in range(20)}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions}
    metadata = {"name": name, "uid": name, "labels": labels, "resourceVersion": "1"}
    return orjson.dumps({"metadata": metadata, "spec": {}, "status": status})


def pod_body(pod: PodState) -> Json:
    """As large as pods are: most of it is of no interest."""
    requests = {"cpu": f"{50 + pod.template * 40}m", "memory": f"{64 + pod.template * 80}Mi"}
    env = [{"name": f"VARIABLE_{n}", "value": "value " * 4} for n in range(12)]
    mounts = [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    is_running = pod.phase == "Running"
    return {
        "metadata": {
            "name": pod.name,
            "namespace": "default",
            "uid": pod.name,
            "resourceVersion": str(pod.version),
            "labels": {"app": f"web-{pod.template}", "pod-template-hash": f"5d59{pod.template}"},
            "annotations": {"checksum/config": "0" * 64},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:x": {}}}}] * 4,
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if pod.is_deleted else {}),
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/web:1.2.3",
                    "resources": {"requests": requests, "limits": requests},
                    "env": env,
                    "volumeMounts": mounts,
                    "ports": [{"containerPort": 8080}],
                }
            ],
            "nodeName": pod.node,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}] * 2,
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "volumes": [{"name": "token", "projected": {"sources": [{}, {}, {}]}}],
        },
        "status": {
            "phase": pod.phase,
            "conditions": [{"type": "Ready", "status": "True"}] if is_running else [],
            "containerStatuses": [{"name": "main", "state": {"running": {}}}] if is_running else [],
        },
    }


# -- measuring -------------------------------------------------------------------------------------


def measure() -> MirrorCost:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "ledger.db"
        with opened(f"sqlite:///{file}") as ledger:
            cost = asyncio.run(_measured(ledger))
        cost.ledger_bytes = file.stat().st_size
    cost.resident_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return cost


async def _measured(ledger: Ledger) -> MirrorCost:
    cost = MirrorCost()
    servers = {f"p1+c{number:02}": ApiServer(number) for number in range(CLUSTERS)}
    for server in servers.values():
        server.events = 0
    await asyncio.wrap_future(ledger.write(lambda tx: _register(tx, list(servers))))

    @asynccontextmanager
    async def connect(access: ClusterAccess) -> AsyncIterator[ApiServer]:
        yield servers[access.kubeconfig.decode()]

    mirror = Mirror(ledger, connect, fence=lambda operation: operation, timings=MirrorTimings())
    keeper = FleetKeeper(ledger)
    started, spent = time.perf_counter(), time.process_time()
    task = asyncio.create_task(mirror.run())
    try:
        await _until_ready(keeper)
        cost.sync_seconds = time.perf_counter() - started
        cost.sync_processor_seconds = time.process_time() - spent
        before = _newest_change(ledger)
        started, spent = time.perf_counter(), time.process_time()
        looking = asyncio.create_task(_look_each_second(keeper, cost))
        await asyncio.gather(*(_traffic(each) for each in servers.values()))
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        cost.seconds = time.perf_counter() - started
        cost.processor_seconds = time.process_time() - spent
        cost.events = sum(each.events for each in servers.values())
        cost.changes = _newest_change(ledger) - before
        await asyncio.sleep(3)
        cost.is_right = await _is_right(keeper, servers)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return cost


def _register(tx: Transaction, names: list[str]) -> None:
    objects.add(tx, "cluster-providers/p1", None, "cluster-provider", "{}")
    for name in names:
        path = document_path(name)
        objects.add(tx, path, "cluster-providers/p1", "cluster", "{}")
        objects.put_files(tx, path, {"kubeconfig": name.encode()})
        clusters.register(tx, name, ClusterSource.MIRROR)


async def _until_ready(keeper: FleetKeeper) -> None:
    while True:
        fleet = await keeper.fresh()
        if all(each.state is ClusterHealth.READY for each in fleet.clusters.values()):
            return
        await asyncio.sleep(0.2)


async def _traffic(server: ApiServer) -> None:
    """Pods come and go at an even pace."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    pods = TRAFFIC_SECONDS * PODS_PER_SECOND
    beats = NODES * TRAFFIC_SECONDS // HEARTBEAT_SECONDS
    for number in range(pods):
        for step, _ in enumerate(server.traffic()):
            due = begun + (number + step / EVENTS_OF_A_POD) / PODS_PER_SECOND
            await asyncio.sleep(max(0.0, due - loop.time()))
        if number * beats // pods != (number + 1) * beats // pods:
            server.beat()


async def _look_each_second(keeper: FleetKeeper, cost: MirrorCost) -> None:
    while True:
        await asyncio.sleep(1)
        started = time.perf_counter()
        await keeper.fresh()
        cost.look_seconds.append(time.perf_counter() - started)


def _newest_change(ledger: Ledger) -> int:
    row = ledger.read(lambda tx: tx.row("SELECT max(seq) FROM changes")).result()
    return int(row[0]) if row and row[0] else 0


async def _is_right(keeper: FleetKeeper, servers: dict[str, ApiServer]) -> bool:
    """Whether the ledger has just the pods that there are."""
    fleet = await keeper.fresh()
    for name, server in servers.items():
        there = {key for key, pod in server.pods.items() if pod.node and pod.phase == "Running"}
        known = {pod.metadata.name for node in fleet.clusters[name].nodes for pod in node.pods}
        if there != known:
            return False
    return True


def rows(cost: MirrorCost) -> Iterator[tuple[str, str]]:
    pods = CLUSTERS * NODES * PODS_PER_NODE
    yield "read at first", f"{CLUSTERS * NODES:,} nodes, {pods:,} pods in {cost.sync_seconds:.1f} s"
    yield "processor for it", f"{cost.sync_processor_seconds:.1f} s"
    yield "events", f"{cost.events / cost.seconds:,.0f} /s for {cost.seconds:.0f} s"
    yield "processor", f"{cost.processor_seconds / cost.seconds:.3f} s per second of traffic"
    yield "of it, per event", f"{cost.processor_seconds / cost.events * 1e6:.0f} us"
    yield "nodes written", f"{cost.changes / cost.seconds:,.0f} /s"
    slowest = max(cost.look_seconds, default=0.0)
    typical = sorted(cost.look_seconds)[len(cost.look_seconds) // 2] if cost.look_seconds else 0.0
    yield "a look at the fleet", f"{typical * 1e3:.0f} ms, slowest {slowest * 1e3:.0f} ms"
    yield "memory", f"{cost.resident_bytes / 2**20:,.0f} MiB, the clusters included"
    yield "ledger", f"{cost.ledger_bytes / 2**20:,.0f} MiB"
    yield "ledger equals clusters", "yes" if cost.is_right else "NO"
