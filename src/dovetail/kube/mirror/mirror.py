"""Mirror of all registered clusters: a follower for each, as they are registered and dropped.

`cli.run.worker` runs it while this process holds the lease. A follower that fails is started anew
by itself; the others do not notice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial

import msgspec
import structlog

from dovetail.aio.backoff import Backoff
from dovetail.aio.supervise import end, run_together
from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError
from dovetail.intents.fleet import ClusterHealth
from dovetail.intents.names import ClusterName
from dovetail.kube.api.access import BadKubeconfig
from dovetail.kube.api.port import KubeApi
from dovetail.kube.mirror.follower import ClusterFollower, Fence, RegisteredOtherwise
from dovetail.kube.mirror.metrics import FOLLOWED
from dovetail.kube.mirror.timings import TIMINGS, MirrorTimings
from dovetail.ledger import Ledger
from dovetail.ledger.database.leases import LeaseLost
from dovetail.ledger.database.protocol import Operation
from dovetail.ledger.intents import clusters, nodes
from dovetail.ledger.intents.clusters import (
    RECENT_SECONDS,
    ClusterAccess,
    ClusterReport,
    ReportedWay,
)

LOG = structlog.get_logger("dovetail.kube.mirror")

Connect = Callable[[ClusterAccess], AbstractAsyncContextManager[KubeApi]]
"""Raises BadKubeconfig."""


class FollowedCluster(msgspec.Struct):
    """A cluster and who follows it."""

    access: ClusterAccess
    changed_at: int
    task: asyncio.Task[None]
    follower: ClusterFollower | None = None
    refusal: str = ""
    """Why nobody follows it."""

    def report(self) -> ClusterReport | None:
        if self.follower is not None:
            found = self.follower.report()
        else:
            found = ClusterReport(ClusterHealth.AWAY, 0, self.refusal) if self.refusal else None
        way = ReportedWay(self.access, self.changed_at)
        return found and msgspec.structs.replace(found, way=way)


class Mirror:
    def __init__(
        self,
        ledger: Ledger,
        connect: Connect,
        *,
        fence: Fence,
        timings: MirrorTimings = TIMINGS,
    ) -> None:
        """`fence` lets an operation through while this process is the one to do it."""
        self._ledger, self._connect = ledger, connect
        self._fence, self._timings = fence, timings
        self._followed: dict[ClusterName, FollowedCluster] = {}

    async def run(self) -> None:
        """Until cancelled, or LeaseLost."""
        try:
            await run_together(self._follow_registrations(), self._report(), self._sweep())
        finally:
            await self._stop(list(self._followed))

    # -- which clusters there are ------------------------------------------------------------------

    async def _follow_registrations(self) -> None:
        while True:
            try:
                await self._look()
            except DovetailError as error:
                LOG.warning("registrations not read", error=str(error))
            await asyncio.sleep(self._timings.registrations_seconds)

    async def _look(self) -> None:
        """Have a follower for each cluster, and none for others."""
        mirrored, now = await result_of(
            self._ledger.read(lambda tx: (clusters.mirrored(tx), tx.now))
        )
        known = self._followed
        unsure = [
            name
            for name, changed_at in mirrored.items()
            if name not in known
            or known[name].changed_at != changed_at
            or changed_at >= now - RECENT_SECONDS
            or known[name].task.done()
        ]
        accesses = await result_of(self._ledger.read(lambda tx: clusters.accesses(tx, unsure)))
        changed = [
            name
            for name in unsure
            if name not in known
            or known[name].access != accesses.get(name, ClusterAccess())
            or known[name].task.done()
        ]
        await self._stop([*(known.keys() - mirrored.keys()), *(each for each in changed)])
        for name in changed:
            access = accesses.get(name, ClusterAccess())
            self._start(name, access, mirrored[name])
        for name in unsure:
            known[name].changed_at = mirrored[name]

    def _start(self, cluster: ClusterName, access: ClusterAccess, changed_at: int) -> None:
        task = asyncio.create_task(self._follow(cluster, access))
        self._followed[cluster] = FollowedCluster(access, changed_at, task)

    async def _stop(self, names: Iterable[ClusterName]) -> None:
        stopped = [self._followed.pop(name).task for name in names if name in self._followed]
        for task in stopped:
            task.cancel()  # All at once: each may take a while.
        await end(stopped)

    async def _follow(self, cluster: ClusterName, access: ClusterAccess) -> None:
        """Until cancelled, or there is nothing to follow any more."""
        backoff = Backoff(self._timings.first_retry_seconds, self._timings.longest_retry_seconds)
        while True:
            try:
                async with self._connect(access) as api:
                    follower = ClusterFollower(
                        self._ledger,
                        cluster,
                        access,
                        api,
                        fence=self._fence,
                        timings=self._timings,
                    )
                    self._followed[cluster].follower = follower
                    await follower.run()
            except BadKubeconfig as error:
                self._followed[cluster].refusal = str(error)
            except (RegisteredOtherwise, LeaseLost):
                # The next look finds what it is now; whoever holds the lease is told by it.
                return
            except Exception:
                LOG.exception("follower failed", cluster=cluster)
                self._followed[cluster].refusal = "the mirror failed to follow it"
            self._followed[cluster].follower = None
            await asyncio.sleep(backoff.next())

    # -- what the ledger is told -------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            told = {name: each.report() for name, each in self._followed.items()}
            reports = {name: each for name, each in told.items() if each is not None}
            counts = Counter(each.state for each in reports.values())
            for state in (ClusterHealth.READY, ClusterHealth.AWAY):
                FOLLOWED.labels(state).set(counts[state])
            await self._try("tell states", partial(clusters.tell, reports=reports))
            await asyncio.sleep(self._timings.report_seconds)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._timings.sweep_seconds)
            await self._try("sweep", nodes.sweep)

    async def _try(self, what: str, operation: Operation[None]) -> None:
        """It will be done again anyway: only the loss of the lease ends it."""
        try:
            await result_of(self._ledger.write(self._fence(operation)))
        except LeaseLost:
            raise
        except DovetailError as error:
            LOG.warning("ledger not written", what=what, error=str(error))
