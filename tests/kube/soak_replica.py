"""A replica of a small level-triggered controller, for the soak.

It keeps a model of all nodes and pods from what its informers tell it, and answers each wish of a
pod (the annotation `want`) once, by adding it to the annotation `done`. For each line on its
standard input it prints what it knows.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import structlog

from dovetail.kube.api.client import connect
from dovetail.kube.api.port import ApiConflict, ApiNotFound, KubeApi
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.leader import Election, LeaseTiming
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.podfit.objects import KubeObject, Node, Pod
from dovetail.telemetry.metrics import METRICS

WANT, DONE = "soak.dovetail.dev/want", "soak.dovetail.dev/done"


class Model:
    """What the handlers were told; `breaks` counts what did not follow from what came before."""

    def __init__(self) -> None:
        self.objects: dict[str, KubeObject] = {}
        self.breaks = 0

    def take(self, old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        assert one is not None
        self.breaks += self.objects.get(one.key) != old
        if new is None:
            del self.objects[one.key]
        else:
            self.objects[one.key] = new

    def versions(self) -> dict[str, str]:
        return {key: each.metadata.resource_version for key, each in self.objects.items()}


class Replica:
    def __init__(self, api: KubeApi, namespace: str, identity: str) -> None:
        self.api = api
        self.nodes, self.pods = Informer(api, Node), Informer(api, Pod, namespace)
        self.models = {"Node": Model(), "Pod": Model()}
        self.queue = WorkQueue("soak", cap=2.0)
        timing = LeaseTiming(lease=6, renew=4, retry=1)
        self.election = Election(api, namespace, "soak", identity, timing=timing)
        self.done = self.conflicts = self.terms = 0
        self.nodes.on(self.models["Node"].take)
        self.pods.on(self.models["Pod"].take)
        self.pods.on(self.changed)
        self.election.on(self.elected)

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and self.election.leading and wish(new):
            self.queue.add(new.key)

    def elected(self, leading: bool) -> None:
        if leading:
            self.terms += 1
            for pod in self.pods.store.values():
                self.changed(None, pod)

    async def work(self, key: str) -> None:
        pod = self.pods.store.get(key)
        if pod is None or not self.election.leading or not (wanted := wish(pod)):
            return
        meta = pod.metadata
        log = ",".join(filter(None, (meta.annotations.get(DONE, ""), wanted)))
        body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {DONE: log}}}
        try:
            await self.api.merge(Pod, meta.name, body, namespace=meta.namespace)
        except ApiNotFound:
            return
        except ApiConflict:
            # The model is behind; the event that brings it up to date brings the key back.
            self.conflicts += 1
            return
        self.done += 1

    async def answer(self) -> None:
        lines = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(lines)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while await lines.readline():
            told = json.dumps(self.told())
            await asyncio.to_thread(print, told, flush=True)
        os._exit(0)  # The harness is gone.

    def told(self) -> dict[str, Any]:
        return {
            "leading": self.election.leading,
            "versions": {kind: model.versions() for kind, model in self.models.items()},
            "breaks": sum(model.breaks for model in self.models.values()),
            "done": self.done,
            "conflicts": self.conflicts,
            "terms": self.terms,
            "lists": summed("dovetail_kube_lists_total"),
            "watches": summed("dovetail_kube_watch_ends_total"),
            "events": summed("dovetail_kube_watch_events_total"),
        }


def wish(pod: Pod) -> str:
    """What the pod wants and has not got."""
    notes = pod.metadata.annotations
    wanted, done = notes.get(WANT, ""), notes.get(DONE, "").split(",")
    return wanted if wanted not in done else ""


def summed(name: str) -> int:
    samples = (sample for metric in METRICS.registry.collect() for sample in metric.samples)
    return int(sum(sample.value for sample in samples if sample.name == name))


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    async with connect(kubeconfig, agent=identity) as api:
        replica = Replica(api, namespace, identity)
        async with asyncio.TaskGroup() as group:
            for each in (replica.nodes, replica.pods, replica.election):
                group.create_task(each.run())
            group.create_task(replica.queue.run(replica.work, workers=8))
            group.create_task(replica.answer())


if __name__ == "__main__":
    # Standard output is for answers.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(*sys.argv[1:]))
