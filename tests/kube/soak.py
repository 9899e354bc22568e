"""A soak of the runtime on a real cluster: `python -m tests.kube.soak --nodes 1000 --pods 20000`.

Two replicas of a controller keep a model of everything and do each piece of work once, under leader
election, while pods come, go and change, connections are cut, the API server and etcd are killed
and started again, and whoever leads is killed. At the end nothing may have been missed by a model,
left undone, or done twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from dovetail.kube.api.client import KubeClient, connect
from dovetail.kube.api.port import ApiError, ApiGone, ApiNotFound, ApiUnreachable
from dovetail.podfit.objects import Node, Pod
from tests.kube.soak_replica import DONE, WANT
from tests.support.kube.cluster import Cluster, node_object
from tests.support.kube.proxy import Proxy, proxied
from tests.support.processes import Process

NAMESPACE = "soak"
AT_ONCE = 40
TROUBLES = ("cut", "cut", "cut", "kill leader", "restart apiserver", "restart etcd")
SETTLE_SECONDS = 120


class Plan(msgspec.Struct, frozen=True):
    nodes: int
    pods: int
    seconds: float
    every: float = 10.0
    """Seconds between troubles."""
    seed: int = 1


class Report(msgspec.Struct):
    """All but the first lines should be nought."""

    pods: int = 0
    pieces_of_work: int = 0
    troubles: Counter[str] = msgspec.field(default_factory=Counter)
    replicas: list[dict[str, Any]] = msgspec.field(default_factory=list)
    seconds_to_settle: float = 0.0
    missed: int = 0
    """Objects of which a replica's model is not what a fresh list says."""
    breaks: int = 0
    """Changes told to a handler that did not follow from the one before."""
    undone: int = 0
    twice: int = 0


class Child(Process):
    """A replica of the controller, which tells on request what it knows."""

    async def told(self) -> dict[str, Any]:
        line = await asyncio.to_thread(self.ask, b"")
        if not line:
            raise self.error("is gone")
        told: dict[str, Any] = json.loads(line)
        return told | {"identity": self.name}


class Soak:
    def __init__(self, plan: Plan, cluster: Cluster, proxy: Proxy, api: KubeClient) -> None:
        self._plan, self._cluster, self._proxy, self._api = plan, cluster, proxy, api
        self._chance = random.Random(plan.seed)
        self._made = self._wishes = 0
        self._children: list[Child] = []
        self.report = Report()

    async def run(self) -> Report:
        await self._fill()
        self._children = [self._child(), self._child()]
        churn = asyncio.create_task(self._churn())
        ends = time.monotonic() + self._plan.seconds
        turn = 0
        while time.monotonic() < ends or turn < len(TROUBLES):
            await asyncio.sleep(self._plan.every * self._chance.uniform(0.5, 1.5))
            await self._trouble(TROUBLES[turn % len(TROUBLES)])
            turn += 1
        churn.cancel()
        await asyncio.wait([churn])
        await self._settle()
        for child in self._children:
            child.kill()
        return self.report

    async def stop(self) -> None:
        for child in self._children:
            child.kill()

    async def _fill(self) -> None:
        nodes = (node_object(f"node-{n}") for n in range(self._plan.nodes))
        await each_of(self._api.create(Node, body) for body in nodes)
        await each_of(self._create() for _ in range(self._plan.pods))

    async def _create(self) -> None:
        self._made += 1
        meta = {"name": f"pod-{self._made}", "annotations": {WANT: "0"}}
        spec = {"containers": [{"name": "main", "image": "any"}]}
        await self._api.create(Pod, {"metadata": meta, "spec": spec}, namespace=NAMESPACE)

    def _child(self) -> Child:
        identity = f"replica-{len(self.report.replicas) + len(self._children)}-{time.monotonic()}"
        config = self._cluster.directory / "proxied.kubeconfig"
        text = self._cluster.kubeconfig.read_text()
        port = self._cluster.url.rpartition(":")[2]
        config.write_text(text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self._proxy.port}"))
        log = self._cluster.directory / f"{identity}.log"
        command = [sys.executable, "-m", "tests.kube.soak_replica", config, NAMESPACE, identity]
        child = Child(command, log, name=identity, pipes=True)
        child.start()
        return child

    async def _churn(self) -> None:
        """Pods come and go and wish for things, nodes change."""
        while True:
            await asyncio.sleep(0.02)
            which = f"pod-{self._chance.randint(1, self._made)}"
            what = self._chance.random()
            try:
                if what < 0.1:
                    await self._api.delete(Pod, which, NAMESPACE)
                elif what < 0.2:
                    await self._create()
                elif what < 0.3 and self._plan.nodes:
                    node = f"node-{self._chance.randrange(self._plan.nodes)}"
                    await self._api.merge(Node, node, labelled(str(self._made)))
                else:
                    self._wishes += 1
                    wish = {"metadata": {"annotations": {WANT: str(self._wishes)}}}
                    await self._api.merge(Pod, which, wish, namespace=NAMESPACE)
            except ApiNotFound:
                pass
            except (ApiError, ApiUnreachable):
                await asyncio.sleep(0.5)

    async def _trouble(self, what: str) -> None:
        if what != "kill leader":
            self.report.troubles[what] += 1
        if what == "cut":
            self._proxy.cut()
        elif what == "restart apiserver":
            await asyncio.to_thread(self._cluster.apiserver.restart)
            await asyncio.to_thread(self._cluster.await_ready)
        elif what == "restart etcd":
            await asyncio.to_thread(self._cluster.etcd.restart)
            await asyncio.to_thread(self._cluster.await_ready)
        else:
            await self._kill_leader()

    async def _kill_leader(self) -> None:
        for n, child in enumerate(self._children):
            told = await child.told()
            if told["leading"]:
                child.kill()
                self.report.troubles["kill leader"] += 1
                self._note(told)
                self._children[n] = self._child()

    async def _settle(self) -> None:
        """Until all is done and the models are true, or it takes too long."""
        started = time.monotonic()
        while True:
            await asyncio.sleep(0.5)
            told = [await child.told() for child in self._children]
            await self._compare(told)
            self.report.seconds_to_settle = round(time.monotonic() - started, 1)
            whole = not self.report.undone and not self.report.missed
            if whole or time.monotonic() - started > SETTLE_SECONDS:
                break
        for each in told:
            self._note(each)

    async def _compare(self, told: list[dict[str, Any]]) -> None:
        nodes, pods = await self._api.list(Node), await self._api.list(Pod, namespace=NAMESPACE)
        true = {
            "Node": {each.key: each.metadata.resource_version for each in nodes.items},
            "Pod": {each.key: each.metadata.resource_version for each in pods.items},
        }
        report = self.report
        report.missed = sum(
            len(true[kind].items() ^ each["versions"][kind].items())
            for each in told
            for kind in true
        )
        logs = [each.metadata.annotations.get(DONE, "").split(",") for each in pods.items]
        wants = [each.metadata.annotations[WANT] for each in pods.items]
        report.pods = len(pods.items)
        report.pieces_of_work = sum(len(log) for log in logs)
        report.undone = sum(want not in log for want, log in zip(wants, logs, strict=True))
        report.twice = sum(len(log) - len(set(log)) for log in logs)

    def _note(self, told: dict[str, Any]) -> None:
        self.report.breaks += told["breaks"]
        self.report.replicas.append({k: v for k, v in told.items() if k != "versions"})


def labelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"soak.dovetail.dev/turn": value}}}


async def each_of(calls: Any) -> None:
    """All of them, so many at a time."""
    left = iter(calls)

    async def work() -> None:
        for call in left:
            await call

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


@asynccontextmanager
async def soaking(plan: Plan, cluster: Cluster) -> AsyncIterator[Soak]:
    await asyncio.to_thread(cluster.make_namespace, NAMESPACE)
    port = int(cluster.url.rpartition(":")[2])
    async with proxied(port) as proxy, connect(str(cluster.kubeconfig)) as api:
        soak = Soak(plan, cluster, proxy, api)
        try:
            yield soak
        finally:
            await soak.stop()


async def too_old(api: KubeClient, version: str) -> bool:
    """Whether the server has forgotten what came after `version`."""
    try:
        async with asyncio.timeout(5):
            async for _ in api.watch(Pod, version, namespace=NAMESPACE):
                return False
    except ApiGone:
        return True
    except TimeoutError:
        return False
    return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    plan = Plan(given.nodes, given.pods, given.minutes * 60, seed=given.seed)

    async def soak(cluster: Cluster) -> Report:
        async with soaking(plan, cluster) as one:
            return await one.run()

    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster.running(Path(directory)) as cluster,
    ):
        cluster.start_controllers()
        report = asyncio.run(soak(cluster))
    print(json.dumps(msgspec.to_builtins(report), indent=2))
    return 1 if report.missed or report.breaks or report.undone or report.twice else 0


if __name__ == "__main__":
    sys.exit(main())
