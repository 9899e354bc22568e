"""Follower of one cluster: watches it, writes what changed in batches, and knows if it answers.

what fails                                  what becomes of it
a watch is cut, expired or refused          the informer goes on, or lists anew and compares
the API server hangs                        the question whether it answers does not end in
                                            time: the cluster is away, what is known stays
a watch is silent while others are not      likewise: what it told may be old
the ledger does not take a batch            its nodes are noted again, and written as they are
                                            by then
the process is killed                       the next one lists, and writes what differs
the lease is lost, the cluster is           the transaction fails as a whole, and the follower
registered otherwise or no more             ends
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from dovetail.aio.backoff import Backoff
from dovetail.aio.supervise import run_together
from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError, Malformed
from dovetail.intents.fleet import ClusterHealth
from dovetail.intents.names import ClusterName
from dovetail.kube.api.port import ApiError, ApiUnreachable, KubeApi
from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.kube.mirror.cpu_policies import CpuPolicies
from dovetail.kube.mirror.metrics import NODES_WRITTEN, WRITE_SECONDS, WRITES
from dovetail.kube.mirror.observation import ClusterObservation, SeenChanges, kept_of_pod
from dovetail.kube.mirror.timings import MirrorTimings
from dovetail.kube.runtime.informer import NOTHING, Informer
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.database.leases import LeaseLost
from dovetail.ledger.database.loading import chunks
from dovetail.ledger.database.protocol import Operation
from dovetail.ledger.intents import clusters, node_rows, nodes
from dovetail.ledger.intents.clusters import ClusterAccess, ClusterReport, ClusterSource
from dovetail.podfit.objects import KubeObject, Node, Pod, ResourceClass, ResourceSlice

LOG = structlog.get_logger("dovetail.kube.mirror")

NODES_PER_WRITE = 100
"""A transaction holds up other writers: it is short."""
NOT_THERE = (403, 404, 405)
"""A cluster that does not have a kind, or does not show it to us."""

Fence = Callable[[Operation[None]], Operation[None]]


class RegisteredOtherwise(DovetailError):
    """The cluster is not registered any more, or in another way."""


class ClusterFollower:
    def __init__(
        self,
        ledger: Ledger,
        cluster: ClusterName,
        access: ClusterAccess,
        api: KubeApi,
        *,
        fence: Fence,
        timings: MirrorTimings,
    ) -> None:
        self._ledger, self._cluster, self._access, self._api = ledger, cluster, access, api
        self._fence, self._timings = fence, timings
        self._changed = asyncio.Event()
        self._observation = ClusterObservation(cluster, self._changed.set)
        self._nodes = self._informer(Node)
        self._pods = Informer(api, Pod, transform=kept_of_pod, backoff=self._backoff())
        self._nodes.on(self._observation.on_node)
        self._pods.on(self._observation.on_pod)
        self._settled = [asyncio.Event() for _ in range(3)]
        """Of kinds that a cluster may not have: known, or known not to be there."""
        self._is_written = False
        """All that was known at first is in the ledger."""
        self._answered_at = asyncio.get_running_loop().time()
        """By the loop's clock, as if it had answered when it was first asked."""
        self._observed_at = 0
        self._refusal = "it was not asked yet"

    async def run(self) -> None:
        """Until cancelled, or of no use any more: LeaseLost, RegisteredOtherwise."""
        observation = self._observation
        slices, claims, classes = self._settled
        await run_together(
            self._nodes.run(),
            self._pods.run(),
            self._follow_optional(ResourceSlice, observation.on_slice, slices),
            self._follow_optional(ResourceClaim, observation.on_claim, claims),
            self._follow_optional(ResourceClass, observation.on_class, classes),
            self._probe(),
            self._write(),
            self._ask_policies(),
        )

    def report(self) -> ClusterReport | None:
        """How the cluster is now; None: that is still to be found out."""
        now = asyncio.get_running_loop().time()
        heard = self._observed_at
        if now - self._answered_at > self._timings.away_seconds:
            return ClusterReport(ClusterHealth.AWAY, heard, self._refusal)
        if not self._is_written:
            return None
        for informer in (self._nodes, self._pods):
            if now - informer.heard_at > self._timings.silent_watch_seconds:
                return ClusterReport(ClusterHealth.AWAY, heard, "a watch of it tells nothing")
        return ClusterReport(ClusterHealth.READY, heard)

    def _informer(self, kind: type[Any]) -> Informer[Any]:
        return Informer(self._api, kind, backoff=self._backoff())

    def _backoff(self) -> Backoff:
        return Backoff(self._timings.first_retry_seconds, self._timings.longest_retry_seconds)

    async def _follow_optional(
        self, kind: type[KubeObject], handler: Callable[[Any, Any], None], settled: asyncio.Event
    ) -> None:
        """Follow a kind once the cluster has it."""
        backoff = self._backoff()
        while True:
            try:
                await self._api.list(kind, fields=NOTHING)
                break
            except ApiUnreachable:
                await asyncio.sleep(backoff.next())
            except ApiError as error:
                if error.code in NOT_THERE:
                    settled.set()
                    await asyncio.sleep(self._timings.optional_seconds)
                else:
                    await asyncio.sleep(backoff.next())
        informer = self._informer(kind)
        informer.on(handler)

        async def settle() -> None:
            await informer.synced()
            settled.set()
            await asyncio.Event().wait()

        await run_together(informer.run(), settle())

    async def _ask_policies(self) -> None:
        await self._nodes.synced()
        await CpuPolicies(self._api, self._observation, self._timings).run()
        await asyncio.Event().wait()  # It may not ask them: labels have to tell.

    # -- does it answer ----------------------------------------------------------------------------

    async def _probe(self) -> None:
        while True:
            await self._probe_once()
            await asyncio.sleep(self._timings.probe_seconds)

    async def _probe_once(self) -> None:
        at, seconds = int(time.time()), self._timings.probe_deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._api.list(Node, fields=NOTHING)
        except TimeoutError:
            self._refusal = f"no answer within {seconds:g} s"
        except (ApiError, ApiUnreachable) as error:
            self._refusal = str(error)
        else:
            # What is known was true when the question was sent, for watches had told it by then.
            self._observed_at = at
            self._answered_at = asyncio.get_running_loop().time()
            self._refusal = "no answer since it was last heard"

    # -- the ledger --------------------------------------------------------------------------------

    async def _write(self) -> None:
        await asyncio.gather(
            self._nodes.synced(), self._pods.synced(), *(each.wait() for each in self._settled)
        )
        backoff = self._backoff()
        is_first = True
        while True:
            self._changed.clear()
            try:
                if is_first:
                    await self._note_all()
                    is_first = False
                await self._flush()
            except (LeaseLost, RegisteredOtherwise):
                raise
            except DovetailError as error:
                WRITES.labels("failed").inc()
                LOG.warning("cluster not written", cluster=self._cluster, error=str(error))
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            self._is_written = True
            await self._changed.wait()
            await asyncio.sleep(self._timings.batch_seconds)

    async def _note_all(self) -> None:
        """What is there, and what the ledger has, is to be compared."""
        rows = await result_of(
            self._ledger.read(lambda tx: node_rows.of_cluster(tx, self._cluster))
        )
        self._observation.note(row.name for row in rows if not row.is_gone)
        self._observation.note(self._observation.nodes)
        self._observation.classes_changed = True

    async def _flush(self) -> None:
        """Write what has changed by now, no more than so many nodes at a time. What changes
        meanwhile is left for the next time, so that it, too, is gathered."""
        observation = self._observation
        if observation.classes_changed:
            observation.classes_changed = False
            try:
                await self._enter(SeenChanges((), ()), dict(observation.classes))
            except BaseException:
                observation.classes_changed = True
                raise
        for names in chunks(observation.changed_nodes(), NODES_PER_WRITE):
            try:
                await self._enter_nodes(names)
            except BaseException:
                observation.note(names)
                raise

    async def _enter_nodes(self, names: Sequence[str]) -> None:
        """A node that the ledger cannot take does not keep others out, and is not tried again
        until it changes."""
        try:
            await self._enter(self._observation.taken(names), None)
        except Malformed as error:
            if len(names) == 1:
                LOG.error(
                    "node not written", cluster=self._cluster, node=names[0], error=str(error)
                )
                return
            for name in names:
                await self._enter_nodes([name])

    async def _enter(
        self, changes: SeenChanges, classes: Mapping[str, Mapping[str, Any]] | None
    ) -> None:
        with WRITE_SECONDS.time():
            operation = self._fence(self._entering(changes, classes))
            await result_of(self._ledger.write(operation))
        WRITES.labels("done").inc()
        NODES_WRITTEN.inc(len(changes.nodes) + len(changes.gone))

    def _entering(
        self, changes: SeenChanges, classes: Mapping[str, Mapping[str, Any]] | None
    ) -> Operation[None]:
        def enter(tx: Transaction) -> None:
            record = clusters.find(tx, self._cluster, lock=True)
            is_same = clusters.accesses(tx, [self._cluster]).get(self._cluster) == self._access
            if record is None or record.source is not ClusterSource.MIRROR or not is_same:
                raise RegisteredOtherwise(f"{self._cluster} is not registered as it was")
            nodes.leave(tx, self._cluster, changes.gone)
            nodes.enter(tx, self._cluster, changes.nodes)
            if classes is not None:
                clusters.set_classes(tx, self._cluster, classes)

        return enter
