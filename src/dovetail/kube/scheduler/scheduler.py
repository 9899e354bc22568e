"""The scheduler put together: cluster state, queue, loop, binder, and what keeps the ledger true.

A replica (kube/replica) feeds the state from its informers and runs the scheduler. Every replica
keeps its state up to date; only the one that leads decides, reconciles and releases. Before its
first decision a leader has compared the ledger with the pods there are, so what a leader before it
left unfinished comes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import structlog

from dovetail.aio.supervise import retry_until_done, run_together
from dovetail.core.errors import DovetailError
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.api.port import KubeApi
from dovetail.kube.classes.controller import ClassController
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.leader import Leader
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.binding import Binder
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import Decider
from dovetail.kube.scheduler.dra.claim_writer import ClaimWriter
from dovetail.kube.scheduler.dra.leftovers import LeftoverClaims
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.loop import SchedulingLoop
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.reconcile import LedgerReconciler
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.state import ClusterState
from dovetail.kube.timings import Timings
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

RELEASERS = 8


class Scheduler:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        recorder: Recorder,
        *,
        state: ClusterState,
        queue: SchedulingQueue,
        releases: WorkQueue,
        classes: ClassController,
        leader: Leader,
        strategy: Strategy,
        timings: Timings,
        claims_seen: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`queue` and `releases` are those that `state` fills. `claims_seen` returns when it knows
        all ResourceClaims up to a version."""
        self.state = state
        self.queue = queue
        self._releases = releases
        self._classes = classes
        self._leader = leader
        self._timings = timings
        self.ledger_watch = LedgerWatch(ledger, state, timings.ledger_watch)
        writer = ClaimWriter(api, state.claimed, claims_seen)
        self.claims = PodClaims(api, ledger, state, writer)
        self.binder = Binder(api, self.claims)
        self.reporter = PodReporter(api, recorder, state.pods)
        self.loop = SchedulingLoop(
            state=state,
            queue=queue,
            decider=Decider(state, strategy),
            binder=self.binder,
            claims=self.claims,
            ledger_watch=self.ledger_watch,
            reporter=self.reporter,
            classes=classes,
            leader=leader,
            timings=timings,
        )
        self.reconciler = LedgerReconciler(
            api,
            ledger,
            state=state,
            queue=queue,
            claims=self.claims,
            ledger_watch=self.ledger_watch,
            leftovers=LeftoverClaims(api, state, self.claims),
            reporter=self.reporter,
        )

    async def run(self) -> None:
        """What every replica does, until cancelled; `loop.run` comes when the cluster is known."""
        try:
            await run_together(
                self.reporter.run(),
                self.ledger_watch.run(),
                self._releases.run(self._release, RELEASERS),
            )
        finally:
            self._releases.close()

    async def read_ledger(self) -> None:
        """Until it was read: it may be away at the start, and without it nothing is decided."""
        await self._retry(self.ledger_watch.refresh, "ledger not read")

    async def lead(self) -> None:
        """For one term: prepare, then keep ledger, queue and pods' devices in order."""
        try:
            # 1. What is not published cannot be claimed.
            await self._classes.published.wait()
            # 2. What was left unfinished comes first.
            await self._retry(self._reconcile, "not ready to lead")
            self.loop.is_prepared = True
            LOG.info("ready to place pods", pods=len(self.queue))
            # 3. Now pods are placed.
            self.queue.wake()
            await self._keep_house()
        finally:
            self.loop.is_prepared = False

    async def _keep_house(self) -> None:
        loop = asyncio.get_running_loop()
        reconciled = loop.time()
        while True:
            await asyncio.sleep(self._timings.housekeeping)
            for state, count in self.queue.depths().items():
                metrics.DEPTHS.labels(state).set(count)
            if nodes := self.state.take_changed_device_nodes():
                self.reconciler.look_at_devices(nodes)
            if loop.time() - reconciled >= self._timings.reconcile:
                reconciled = loop.time()
                with suppress(DovetailError):
                    await self.reconciler.reconcile()

    async def _reconcile(self) -> None:
        await self.reconciler.reconcile()

    async def _release(self, uid: str) -> None:
        """A pod is over; where this replica does not lead, that is the leader's to do."""
        if self._leader.leading:
            await self.claims.release(uid)

    async def _retry(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        await retry_until_done(
            work,
            on=DovetailError,
            pause_seconds=self._timings.housekeeping,
            log=lambda error: LOG.warning(what, error=str(error)),
        )
