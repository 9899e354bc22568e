"""A cluster in memory with a scheduler at work, and the makings of nodes, classes and pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.replica import Replica
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.leader import Election
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.scheduler import Scheduler
from dovetail.kube.scheduler.state import ClusterState
from dovetail.kube.timings import Timings
from dovetail.ledger import Ledger, open_ledger
from dovetail.podfit.objects import Event, Node, Pod, ResourceClass
from dovetail.service.device_claims import DeviceLedger
from tests.support.kube.memory import MemoryApi

NAMESPACE = "default"
LONGEST_WAIT_SECONDS = 20.0
QUICK = Timings(first_backoff=0.05, ledger_watch=0.05, housekeeping=0.05, class_status=0.05)
"""What is done every second, or waits for one, does so twenty times as often."""


def device(name: str, kind: str = "gpu", **about: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, **about}


def node_body(
    name: str,
    devices: Sequence[Mapping[str, Any]] = (),
    cpu: str = "8",
    plugged: Mapping[str, int] | None = None,
) -> Any:
    """`plugged` is what device plugins have."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    amounts |= {resource: str(units) for resource, units in (plugged or {}).items()}
    notes = {"dovetail.dev/devices": json.dumps(list(devices))} if devices else {}
    return {
        "metadata": {"name": name, "annotations": notes},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def class_body(name: str, kind: str = "gpu") -> Any:
    expression = {"key": "Kind", "operator": "In", "values": [kind]}
    return {
        "metadata": {"name": name},
        "spec": {"resourceSelector": [{"matchExpressions": [expression]}]},
    }


def pod_body(
    name: str,
    scheduler: str = "dovetail",
    cpu: str = "100m",
    direct: Mapping[str, int] | None = None,
    **classes: int,
) -> Any:
    """`gpu=2` asks for two of the class `gpu`; `direct` is asked for without a class."""
    asked = {f"resourceclass.dovetail.dev/{key}": str(count) for key, count in classes.items()}
    asked |= {resource: str(units) for resource, units in (direct or {}).items()}
    resources = {"requests": {"cpu": cpu, **asked}, "limits": asked}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def empty_state() -> ClusterState:
    return ClusterState(devices_of, SchedulingQueue(), WorkQueue("releases"))


class World:
    """An API and a ledger; schedulers come and go."""

    def __init__(self, database: str) -> None:
        self.api = MemoryApi()
        self.ledger: Ledger = open_ledger(database)
        self.devices = DeviceLedger(self.ledger)

    async def node(self, name: str, *devices: Mapping[str, Any], **about: Any) -> None:
        await self.api.create(Node, node_body(name, devices, **about))

    async def set_devices(self, name: str, *devices: Mapping[str, Any]) -> None:
        notes = {"dovetail.dev/devices": json.dumps(list(devices))}
        await self.api.merge(Node, name, {"metadata": {"annotations": notes}})

    async def resource_class(self, name: str, kind: str = "gpu") -> None:
        await self.api.create(ResourceClass, class_body(name, kind))

    async def pod(self, name: str, **about: Any) -> Pod:
        await self.api.create(Pod, pod_body(name, **about), namespace=NAMESPACE)
        return self.see(name)

    def see(self, name: str) -> Pod:
        return self.api.everything(Pod)[f"{NAMESPACE}/{name}"]

    def there(self, name: str) -> bool:
        return f"{NAMESPACE}/{name}" in self.api.everything(Pod)

    def is_bound(self, *names: str) -> bool:
        return all(self.see(name).spec.node_name for name in names)

    def notes(self, name: str) -> list[str]:
        """What events say about a pod."""
        return [
            each.note
            for each in self.api.everything(Event).values()
            if each.regarding["name"] == name
        ]

    async def is_held(self, wanted: dict[str, dict[str, int]]) -> bool:
        return await self.held() == wanted

    async def held(self) -> dict[str, dict[str, int]]:
        """Devices by the pod that holds them; a pod that is no more by its uid."""
        names = {pod.metadata.uid: pod.metadata.name for pod in self.api.everything(Pod).values()}
        holders = await self.devices.holders()
        return {names.get(uid, uid): dict(each.devices) for uid, each in holders.items()}

    def replica(
        self,
        strategy: Strategy = Strategy.FIRST_FIT,
        timings: Timings = QUICK,
        election: Election | None = None,
    ) -> Replica:
        recorder = Recorder(self.api, "dovetail-scheduler", "test")
        return Replica(
            self.api,
            self.devices,
            recorder,
            strategy=strategy,
            timings=timings,
            election=election,
        )

    @asynccontextmanager
    async def scheduling(self, replica: Replica | None = None) -> AsyncIterator[Scheduler]:
        """With the scheduler of a replica that runs and is ready."""
        running = replica or self.replica()
        stop = asyncio.Event()
        task = asyncio.create_task(running.run(stop))
        try:
            await until(running.scheduler.loop.may_decide)
            yield running.scheduler
        finally:
            stop.set()
            await task

    def close(self) -> None:
        self.ledger.close()


async def until(holds: Callable[[], bool]) -> None:
    async def later() -> bool:
        return holds()

    await until_told(later)


async def until_told(holds: Callable[[], Awaitable[bool]]) -> None:
    """As `until`, where it takes a question to know."""
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.005)
