"""When pods were asked for, let go by their last gate, and running, as one watch sees it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from dovetail.kube.api.client import connect
from dovetail.kube.api.port import KubeApi
from dovetail.kube.runtime.informer import Informer
from dovetail.podfit.objects import Pod

LONGEST_SECONDS = 300.0
TOGETHER = 16
"""Requests under way at a time."""


class PodTimes:
    """Of one namespace; seconds of one clock, by the pod's name."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._lanes = asyncio.Semaphore(TOGETHER)
        self._runs: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.asked: dict[str, float] = {}
        self.let_go: dict[str, float] = {}
        self.running: dict[str, float] = {}

    @classmethod
    @asynccontextmanager
    async def watched(cls, kubeconfig: str, namespace: str) -> AsyncIterator[PodTimes]:
        async with connect(kubeconfig) as api:
            times = cls(api, namespace)
            pods = Informer(api, Pod, namespace)
            pods.on(times.see)
            watching = asyncio.create_task(pods.run())
            await pods.synced()
            try:
                yield times
            finally:
                watching.cancel()

    def see(self, _old: Pod | None, new: Pod | None) -> None:
        if new is None:
            return
        name, now = new.metadata.name, perf_counter()
        if not new.spec.scheduling_gates:
            self.let_go.setdefault(name, now)
        if new.status.phase == "Running":
            self.running.setdefault(name, now)
            self._runs[name].set()

    async def create(self, body: Mapping[str, Any]) -> None:
        async with self._lanes:
            self.asked[body["metadata"]["name"]] = perf_counter()
            await self._api.create(Pod, body, namespace=self._namespace)

    async def run(self, bodies: Iterable[Mapping[str, Any]]) -> list[str]:
        """Create them all at once and wait until they run; their names."""
        pods = list(bodies)
        names = [body["metadata"]["name"] for body in pods]
        async with asyncio.timeout(LONGEST_SECONDS):
            await asyncio.gather(*map(self.create, pods))
            await asyncio.gather(*(self._runs[name].wait() for name in names))
        return names

    def hand_over(self, name: str) -> float:
        """From being asked for to running."""
        return self.running[name] - self.asked[name]

    def rate(self, names: Iterable[str], reached: Mapping[str, float]) -> float:
        """Pods per second, from the first that was asked for to the last that got there."""
        among = list(names)
        began = min(self.asked[name] for name in among)
        return len(among) / (max(reached[name] for name in among) - began)
