"""One replica put together: shared informers, class controller, scheduler, and their leader.

The daemon makes it and runs it. Class controller and scheduler are parts beside each other: both
read the cluster state that the informers feed, both do their work while this replica leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from dovetail.aio.supervise import run_together
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.api.port import KubeApi
from dovetail.kube.classes.controller import ClassController
from dovetail.kube.classes.publishing import publishable_devices
from dovetail.kube.classes.resource_claims import KubeDeviceClass, ResourceClaim
from dovetail.kube.extender.extender import ExtenderParts
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.leader import Election, Leader
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.scheduler import Scheduler
from dovetail.kube.scheduler.state import ClusterState
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import Namespace, Node, Pod, ResourceClass, ResourceSlice
from dovetail.service.device_claims import DeviceLedger


class Replica:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        recorder: Recorder,
        *,
        name: str = "dovetail",
        strategy: Strategy = Strategy.FIRST_FIT,
        election: Election | None = None,
        timings: Timings | None = None,
    ) -> None:
        timings = timings or Timings()
        self._api = api
        self._recorder = recorder
        self._strategy = strategy
        queue, releases = SchedulingQueue(name, timings), WorkQueue("release devices", cap=30.0)
        state = ClusterState(partial(publishable_devices, ledger), queue, releases)
        self.leader = Leader(election)
        self._informers = Informers(api, state, timings.optional_kinds)
        self.classes = ClassController(
            api, ledger, state.catalogue, self._informers.classes.store, timings
        )
        self.scheduler = Scheduler(
            api,
            ledger,
            recorder,
            state=state,
            queue=queue,
            releases=releases,
            classes=self.classes,
            leader=self.leader,
            strategy=strategy,
            timings=timings,
            claims_seen=self._informers.resource_claims.reached,
        )
        self._known = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether it knows the cluster."""
        return self._known.is_set()

    def extender_parts(self) -> ExtenderParts:
        scheduler = self.scheduler
        return ExtenderParts(
            api=self._api,
            state=scheduler.state,
            claims=scheduler.claims,
            binder=scheduler.binder,
            ledger_watch=scheduler.ledger_watch,
            reporter=scheduler.reporter,
            strategy=self._strategy,
        )

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Until `stop`: then no more decisions, and what is being bound comes to its end.

        The parts end in the opposite order: the lease is given back when all work of the leader is.
        """
        await run_together(
            stop.wait(),
            self._informers.run(),
            self._recorder.run(),
            self._stand_for_election(),
            self.classes.run(),
            self.scheduler.run(),
            self._work(ready),
        )

    async def _stand_for_election(self) -> None:
        await self._known.wait()
        await self.leader.run()

    async def _work(self, ready: Callable[[], None]) -> None:
        """Once the cluster is known: lead whenever we may, and decide whenever we lead."""
        await self._informers.synced()
        await self.scheduler.read_ledger()
        self._known.set()
        ready()
        await run_together(
            self.leader.run_while_leading(self._lead),
            self.scheduler.loop.run(),
        )

    async def _lead(self) -> None:
        await run_together(self.classes.lead(), self.scheduler.lead())


class Informers:
    """Of everything the state has to know."""

    def __init__(self, api: KubeApi, state: ClusterState, wait_for_optional: float) -> None:
        """`wait_for_optional`: seconds until kinds count as absent that a cluster may not have."""
        self._wait_for_optional = wait_for_optional
        self.classes = Informer(api, ResourceClass)
        self.slices = Informer(api, ResourceSlice)
        self.resource_claims = Informer(api, ResourceClaim)
        self.device_classes = Informer(api, KubeDeviceClass)
        self.namespaces = Informer(api, Namespace)
        self.nodes = Informer(api, Node)
        self.pods = Informer(api, Pod)
        self.classes.on(state.on_class)
        self.slices.on(state.on_slice)
        self.resource_claims.on(state.on_resource_claim)
        self.device_classes.on(state.on_device_class)
        self.namespaces.on(state.on_namespace)
        self.nodes.on(state.on_node)
        self.pods.on(state.on_pod)
        self._optional = (self.classes, self.slices, self.resource_claims, self.device_classes)

    async def run(self) -> None:
        cluster = (self.namespaces, self.nodes, self.pods)
        await asyncio.gather(*(each.run() for each in (*cluster, *self._optional)))

    async def synced(self) -> None:
        await asyncio.gather(self.namespaces.synced(), self.nodes.synced(), self.pods.synced())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_for_optional):
                await asyncio.gather(*(each.synced() for each in self._optional))
