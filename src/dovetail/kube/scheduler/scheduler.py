"""The scheduler put together: informers, ledger, queue, decisions, and who may make them.

Every replica keeps its view of the cluster up to date. Only the one that leads decides, sweeps and
writes to the ledger; before its first decision it has compared the ledger with the pods there are,
so what a leader before it left unfinished comes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.devices.allocation.request import ClassStatus
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.hierarchy import problems_of
from dovetail.kube.api.port import KubeApi
from dovetail.kube.classes import devices_of
from dovetail.kube.classes.publishing import Publisher
from dovetail.kube.classes.status import Report, StatusWriter
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.leader import Election
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.binding import Binder
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import Decider
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.loop import SchedulingLoop
from dovetail.kube.scheduler.queue import SchedulingQueue, Wake
from dovetail.kube.scheduler.reconcile import Reconciler
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Namespace, Node, Pod, ResourceClass, ResourceSlice
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

SWEEP_SECONDS = 60.0
WATCH_SECONDS = 1.0
DRAIN_SECONDS = 20.0
LATE_SECONDS = 10.0
"""How long classes and slices are waited for: a cluster may not have these kinds at all."""
RELEASERS = 8


class Scheduler:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        recorder: Recorder,
        *,
        name: str = "dovetail",
        strategy: Strategy = Strategy.FIRST_FIT,
        election: Election | None = None,
    ) -> None:
        self._name = name
        self._election = election
        self._recorder = recorder
        self._is_prepared = False
        self.is_ready = False
        """Whether it knows the cluster."""
        self.state = ClusterState(self, partial(publishable, ledger))
        self.queue = SchedulingQueue()
        self.ledger_watch = LedgerWatch(ledger, self.state.hear_ledger)
        self.claims = PodClaims(api, ledger, self.state.hear_release)
        self.binder = Binder(api, self.claims)
        self.reporter = PodReporter(api, recorder, self.state.pods)
        self._devices = Publisher(
            "publish devices", self.state.devices, put=ledger.publish, drop=ledger.withdraw
        )
        self._classes = Publisher(
            "publish classes",
            self.state.classes,
            put=lambda _, each: ledger.put_class(each),
            drop=ledger.drop_class,
        )
        self._releases = WorkQueue("release devices", cap=30.0)
        self.loop = SchedulingLoop(
            state=self.state,
            queue=self.queue,
            decider=Decider(self.state, strategy),
            binder=self.binder,
            claims=self.claims,
            ledger_watch=self.ledger_watch,
            reporter=self.reporter,
            publisher=self._devices,
            may_decide=self.may_decide,
        )
        self.reconciler = Reconciler(
            api,
            ledger,
            state=self.state,
            queue=self.queue,
            claims=self.claims,
            ledger_watch=self.ledger_watch,
            reporter=self.reporter,
        )
        self._informers = Informers(api, self.state)
        self._status = StatusWriter(api, self._informers.classes.store, self._report)
        self._changed_device_nodes: set[str] = set()
        """Nodes whose devices changed since pods were last told."""
        self._leadership_changed = asyncio.Event()

    # Who may decide.

    @property
    def leading(self) -> bool:
        return self._election is None or self._election.leading

    def may_decide(self) -> bool:
        return self._is_prepared and self.leading

    # What the state tells.

    def pending(self, pod: Pod) -> None:
        if is_ours(pod, self._name):
            self.queue.add(pod)
            self.loop.wake()
        else:
            self.queue.drop(pod.metadata.uid)

    def settled(self, uid: str) -> None:
        self.queue.drop(uid)

    def over(self, pod: Pod) -> None:
        if self.leading:
            self._releases.add(pod.metadata.uid)

    def devices_changed(self, node: str, devices: tuple[Device, ...] | None) -> None:
        del devices
        self._devices.changed(node)
        self._changed_device_nodes.add(node)

    def class_changed(self, name: str) -> None:
        self._classes.changed(name)

    def cluster_changed(self, what: Wake) -> None:
        self.loop.cluster_changed(what)

    # Lifecycle.

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Until `stop`: then no more decisions, and what is in flight comes to its end."""
        background = [self._informers.run(), self._recorder.run(), self.reporter.run()]
        background += [self._devices.run(), self._classes.run(), self.ledger_watch.run()]
        background += [self._releases.run(self._release, RELEASERS)]
        tasks = [asyncio.create_task(each) for each in background]
        deciding = asyncio.create_task(self._decide(tasks, ready))
        try:
            await _first(stop.wait(), [*tasks, deciding])
        finally:
            await _ended([deciding])
            await self.loop.drain(DRAIN_SECONDS)
            await _ended(tasks)
            self._releases.close()

    async def _decide(self, tasks: list[asyncio.Task[None]], ready: Callable[[], None]) -> None:
        """Once the cluster is known, stand for election, and decide whenever we lead."""
        await self._informers.synced()
        await self._until_heard()
        self.is_ready = True
        ready()
        parts = [asyncio.create_task(self._lead())]
        if self._election is not None:
            self._election.on(lambda _: self._leadership_changed.set())
            parts.append(asyncio.create_task(self._election.run()))
            # The lease is given back last, after what is in flight came to its end.
            tasks.append(parts[-1])
        try:
            await _first(self.loop.run(), parts)
        finally:
            await _ended(parts[:1])

    async def _until_heard(self) -> None:
        """The ledger may be away when we start; without it nothing can be decided."""
        while True:
            try:
                await self.ledger_watch.refresh()
                return
            except DovetailError as error:
                LOG.warning("ledger not read", error=str(error))
                await asyncio.sleep(WATCH_SECONDS)

    async def _lead(self) -> None:
        """Whenever we lead: prepare, then keep things in order until we do no longer."""
        while True:
            self._leadership_changed.clear()
            if not self.leading:
                await self._leadership_changed.wait()
                continue
            keeping = asyncio.create_task(self._keep())
            try:
                while self.leading:
                    await _first(self._leadership_changed.wait(), [keeping])
                    self._leadership_changed.clear()
            finally:
                await _ended([keeping])
                self._is_prepared = False
                self._devices.stop()
                self._classes.stop()

    async def _keep(self) -> None:
        await self._prepare()
        writing = asyncio.create_task(self._status.run())
        try:
            await _first(self._watch(), [writing])
        finally:
            await _ended([writing])

    async def _prepare(self) -> None:
        while not self._is_prepared:
            try:
                # What is not published cannot be claimed.
                await asyncio.gather(self._devices.start(), self._classes.start())
                await self.reconciler.reconcile()
                self._is_prepared = True
            except DovetailError as error:
                LOG.warning("not ready to lead", error=str(error))
                await asyncio.sleep(WATCH_SECONDS)
        LOG.info("ready to place pods", pods=len(self.queue))
        self.loop.wake()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        swept = loop.time()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for state, count in self.queue.depths().items():
                metrics.DEPTHS.labels(state).set(count)
            if self._changed_device_nodes:
                nodes, self._changed_device_nodes = frozenset(self._changed_device_nodes), set()
                self.reconciler.look_at_devices(nodes)
            if loop.time() - swept >= SWEEP_SECONDS:
                swept = loop.time()
                with suppress(DovetailError):
                    await self.reconciler.reconcile()

    async def _release(self, uid: str) -> None:
        await self.claims.release(uid)

    def _report(self, name: str) -> Report:
        """What the status of a class says."""
        found = self.state.classes.get(name)
        if found is None:
            return ClassStatus(), self.state.unreadable.get(name, ("it is not read yet",))
        problems = tuple(map(str, problems_of(found, self.state.classes)))
        return self.state.book.status(name), problems


class Informers:
    """Of everything the state has to know."""

    def __init__(self, api: KubeApi, state: ClusterState) -> None:
        self.classes = Informer(api, ResourceClass)
        self.slices = Informer(api, ResourceSlice)
        self.namespaces = Informer(api, Namespace)
        self.nodes = Informer(api, Node)
        self.pods = Informer(api, Pod)
        self.classes.on(state.on_class)
        self.slices.on(state.on_slice)
        self.namespaces.on(state.on_namespace)
        self.nodes.on(state.on_node)
        self.pods.on(state.on_pod)

    async def run(self) -> None:
        every = (self.classes, self.slices, self.namespaces, self.nodes, self.pods)
        await asyncio.gather(*(each.run() for each in every))

    async def synced(self) -> None:
        await asyncio.gather(self.namespaces.synced(), self.nodes.synced(), self.pods.synced())
        with suppress(TimeoutError):
            async with asyncio.timeout(LATE_SECONDS):
                await asyncio.gather(self.classes.synced(), self.slices.synced())


def publishable(
    ledger: DeviceLedger, node: Node, slices: Sequence[ResourceSlice]
) -> tuple[Device, ...]:
    """The devices of a node. Raises Malformed, also where the ledger could not have them: what it
    does not have cannot be claimed, and pods would be sent there in vain."""
    found = devices_of(node, slices)
    ledger.refuse_unfit(node.metadata.name, found)
    return found


def is_ours(pod: Pod, name: str) -> bool:
    """Whether a pod waits for this scheduler, and may be placed."""
    return (
        pod.spec.scheduler_name == name
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    )


async def _first(wanted: Coroutine[Any, Any, Any], parts: Sequence[asyncio.Task[None]]) -> None:
    """Wait for `wanted`. A part that ends before it has failed, and everything with it: whoever
    runs the process starts it anew, which is better than a scheduler of which a part is missing."""
    waiting = asyncio.create_task(wanted)
    try:
        await asyncio.wait([waiting, *parts], return_when=asyncio.FIRST_COMPLETED)
        for task in (waiting, *parts):
            if task.done():
                task.result()
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
