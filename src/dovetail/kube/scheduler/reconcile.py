"""Reconciler: makes ledger and pods agree, and flags pods whose devices are in doubt.

The scheduler runs it when a leader starts, and now and then. Every step may be repeated, or be done
by two at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from dovetail.kube.api.port import KubeApi
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.claims import Agreement, PodClaims
from dovetail.kube.scheduler.dra.leftovers import LeftoverClaims
from dovetail.kube.scheduler.ledger_diff import LedgerDiff, ledger_diff_of
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.plans import holdings_of, is_over
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Pod
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

AT_ONCE = 16
"""Nodes whose pods are claimed for again at a time."""


class LedgerReconciler:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        *,
        state: ClusterState,
        queue: SchedulingQueue,
        claims: PodClaims,
        ledger_watch: LedgerWatch,
        leftovers: LeftoverClaims,
        reporter: PodReporter,
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._state = state
        self._queue = queue
        self._claims = claims
        self._ledger_watch = ledger_watch
        self._leftovers = leftovers
        self._reporter = reporter
        self._pods_in_conflict: set[str] = set()
        """Bound pods whose devices the ledger says others hold."""
        self._overlapping: set[str] = set()
        """Bound pods whose devices ResourceClaims of others have, too."""

    async def reconcile(self) -> LedgerDiff:
        """Raises what the ledger and the API server raise; what was not done is found again."""
        await self._ledger_watch.refresh()
        holders = await self._ledger.holders()
        found = ledger_diff_of(holders, self._state.pods, self._state.planned_uids())
        for uid in found.over:
            await self._claims.release(uid)
        gone = await self._uids_without_pods(found.unknown)
        for uid in gone:
            await self._claims.release(uid)
        for uid in found.unbound:
            self._queue.retry_parked(uid)
        await self._claim_again(found.unclaimed)
        for what, count in (
            ("released", len(found.over) + len(gone)),
            ("adopted", len(found.unbound)),
            ("claimed again", len(found.unclaimed)),
            ("left over", await self._leftovers.sweep()),
        ):
            metrics.SWEPT.labels(what).inc(count)
        self.look_at_devices()
        return found

    async def _uids_without_pods(self, unknown: Iterable[str]) -> list[str]:
        """Those of which there are no pods: the cache may only be late, so the server is asked.

        What was claimed before it is asked, and is no pod of its answer, never will be one again.
        """
        suspects = list(unknown)
        if not suspects:
            return []
        there = await self._api.list(Pod)
        alive = {pod.metadata.uid for pod in there.items if not is_over(pod)}
        return [uid for uid in suspects if uid not in alive]

    async def _claim_again(self, pods: Iterable[Pod]) -> None:
        """On each node the oldest binding first: of two that say they hold a device, it wins."""
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
        limit = asyncio.Semaphore(AT_ONCE)

        async def one_by_one(some: list[Pod]) -> None:
            async with limit:
                for pod in some:
                    await self._make_ledger_agree(pod)

        await asyncio.gather(*(one_by_one(some) for some in by_node.values()))

    async def _make_ledger_agree(self, pod: Pod) -> None:
        if await self._claims.make_ledger_agree(pod) is Agreement.CONFLICT:
            self._pods_in_conflict.add(pod.metadata.uid)
            metrics.SWEPT.labels("in conflict").inc()
        else:
            self._pods_in_conflict.discard(pod.metadata.uid)

    def look_at_devices(self, nodes: frozenset[str] | None = None) -> None:
        """Tell pods (on these nodes) whose devices are ill, gone or somebody else's."""
        self._pods_in_conflict &= self._state.pods.keys()
        self._overlapping &= self._state.pods.keys()
        for pod in list(self._state.pods.values()):
            if nodes is not None and pod.spec.node_name not in nodes:
                continue
            trouble = self._trouble(pod)
            if trouble is not None:
                self._reporter.report_lost_devices(pod, *trouble)
            else:
                self._reporter.report_devices_back(pod)

    def _trouble(self, pod: Pod) -> tuple[str, str] | None:
        """A word and a sentence for what is wrong with the devices of a bound pod."""
        held = holdings_of(pod)
        if not held:
            return None
        node, names = pod.spec.node_name, sorted({each.device for each in held})
        if pod.metadata.uid in self._pods_in_conflict:
            listed = ", ".join(names)
            return "DeviceConflict", f"An older pod holds some of {listed} of node {node}."
        if rival := self._rival_of(pod):
            return "DeviceConflict", f"{rival} has some of {', '.join(names)} of node {node}, too."
        there = {each.name: each for each in self._state.devices.get(node, ())}
        gone = [name for name in names if name not in there]
        if gone:
            return "DeviceRemoved", f"Node {node} no longer has {', '.join(gone)}."
        ill = [name for name in names if not there[name].healthy]
        if ill:
            return "DeviceUnhealthy", f"{', '.join(ill)} of node {node} is not healthy."
        return None

    def _rival_of(self, pod: Pod) -> str:
        """The ResourceClaim of somebody else that has a device of a bound pod; empty: none."""
        uid = pod.metadata.uid
        rival = self._state.claimed.rival_of(uid)
        if rival is None:
            self._overlapping.discard(uid)
            return ""
        if uid not in self._overlapping:
            self._overlapping.add(uid)
            metrics.OVERLAPS.inc()
        return f"ResourceClaim {rival.key}"
