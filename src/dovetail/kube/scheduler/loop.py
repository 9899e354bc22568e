"""The scheduling loop: takes pods from the queue, decides, and has plans carried out.

A decision takes no I/O and counts at once, so the next one need not wait for what the last one
has to write: many plans are being carried out while decisions go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.kube.classes.publishing import Publisher
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import Decider, Refusal
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.plans import BindingPlan, fence_of
from dovetail.kube.scheduler.pod_requirements import (
    PodRequirements,
    RequirementsCache,
    UnschedulablePod,
)
from dovetail.kube.scheduler.queue import QueuedPod, SchedulingQueue, Wake
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.resume import holdings_for
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Pod

LOG = structlog.get_logger("dovetail.kube.scheduler")

IN_FLIGHT = 64
"""Plans that are being carried out at a time."""
SLICE = 0.005
"""Seconds of decisions in a row, after which others on the event loop have their turn."""
WAKE_SECONDS = 0.1
"""What may help is gathered for so long before pods are woken."""
LONGEST_WAIT = 10.0
"""Seconds until the loop looks around for pods that were forgotten, whatever happens or not."""
QUICK_TRIES = 5
"""Turns of a pod that follow each other at once, when others are faster; then it waits."""
PATIENCE = 3
"""Turns that a claim on devices that are not seen waits for them, before it is given back."""


class SchedulingLoop:
    def __init__(
        self,
        *,
        state: ClusterState,
        queue: SchedulingQueue,
        decider: Decider,
        binder: Binder,
        claims: PodClaims,
        ledger_watch: LedgerWatch,
        reporter: PodReporter,
        publisher: Publisher[tuple[Device, ...]],
        may_decide: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._queue = queue
        self._decider = decider
        self._binder = binder
        self._claims = claims
        self._ledger_watch = ledger_watch
        self._reporter = reporter
        self._publisher = publisher
        self._may_decide = may_decide
        self._clock = clock
        self._requirements = RequirementsCache()
        self._bindings: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._news = Wake(0)
        self._woken = 0.0
        self._looked = 0.0

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def cluster_changed(self, what: Wake) -> None:
        self._news |= what
        self._wake.set()

    async def run(self) -> None:
        """Decide until cancelled; then `drain`."""
        while True:
            await self._decide_all()
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience()):
                    await self._wake.wait()
            if self._clock() >= self._looked + LONGEST_WAIT:
                self._looked = self._clock()
                self._queue.wake_stale(self._looked)

    async def drain(self, seconds: float) -> None:
        """Let what is in flight come to its end."""
        if self._bindings:
            await asyncio.wait(self._bindings, timeout=seconds)
        for task in self._bindings:
            task.cancel()

    def _patience(self) -> float:
        """How long there is nothing to do, if nothing happens."""
        if not self._has_leave():
            return LONGEST_WAIT
        now, due = self._clock(), self._queue.next_due()
        longest = max(0.0, self._woken + WAKE_SECONDS - now) if self._news else LONGEST_WAIT
        return longest if due is None else max(0.0, min(longest, due - now))

    def _has_leave(self) -> bool:
        """Whether another decision may be made now; whoever changes that stirs."""
        return self._may_decide() and len(self._bindings) < IN_FLIGHT

    async def _decide_all(self) -> None:
        slice_ends = self._clock() + SLICE
        while self._has_leave():
            now = self._clock()
            if self._news and now >= self._woken + WAKE_SECONDS:
                self._queue.wake(self._news, now)
                self._news, self._woken = Wake(0), now
            entry = self._queue.take(now)
            if entry is None:
                return
            self._turn(entry)
            if now >= slice_ends:
                await asyncio.sleep(0)
                slice_ends = self._clock() + SLICE

    def _turn(self, entry: QueuedPod) -> None:
        pod = self._state.pods.get(entry.pod.metadata.uid, entry.pod)
        try:
            with metrics.timed("decide"):
                required = self._requirements.of(pod)
                claimed = self._state.holders.claimed(pod.metadata.uid)
                found = (
                    self._decider.decide(required)
                    if claimed is None
                    else self._adopted(entry, pod, required, *claimed)
                )
        except UnschedulablePod as error:
            self._refuse(pod, Wake(0), str(error))
            return
        except Exception:
            # A bug. It must not keep the others from being placed, as it would again and again.
            LOG.exception("pod not decided", pod=pod.key)
            metrics.ATTEMPTS.labels(BindingOutcome.FAILED.value).inc()
            self._queue.back_off(pod.metadata.uid, self._clock())
            return
        match found:
            case Refusal(why=why):
                self._refuse(pod, required.wake_on, why)
            case None:
                pass
            case BindingPlan():
                self._start_binding(found)
            case _:
                self._start_binding(BindingPlan(pod, found.node, found.holdings))

    def _adopted(
        self, entry: QueuedPod, pod: Pod, required: PodRequirements, node: str, claimed: Amounts
    ) -> BindingPlan | None:
        """The plan that a claim was made for; None: it is given back, or waited for."""
        if not self._state.has_node(node):
            self._give_back(pod, f"node {node} is no more")
        elif fence_of(pod):
            # Who put the fence may still be about to release whatever is claimed.
            self._give_back(pod, f"the claim on {node} is older than the last one given back")
        else:
            holdings = holdings_for(self._state, required.asks, node, claimed)
            if holdings is not None:
                return BindingPlan(pod, node, holdings, is_claimed=True)
            if entry.attempts > PATIENCE:
                self._give_back(pod, f"devices claimed on {node} are no longer those asked for")
            else:
                self._queue.back_off(pod.metadata.uid, self._clock())
        return None

    def _refuse(self, pod: Pod, wake_on: Wake, why: str) -> None:
        metrics.ATTEMPTS.labels("refused").inc()
        self._queue.park(pod.metadata.uid, self._clock(), wake_on)
        self._reporter.refused(pod, why)

    def _start_binding(self, plan: BindingPlan) -> None:
        self._state.assume(plan)
        self._start(self._carry_out(plan))

    def _give_back(self, pod: Pod, why: str) -> None:
        self._start(self._given_back(pod, why))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._bindings.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._bindings.discard(task)
        self._wake.set()

    async def _given_back(self, pod: Pod, why: str) -> None:
        uid = pod.metadata.uid
        try:
            await self._claims.give_back(pod, why)
            await self._ledger_watch.refresh()
        except DovetailError as error:
            LOG.warning("claim not given back", pod=pod.key, error=str(error))
        finally:
            self._queue.back_off(uid, self._clock())

    async def _carry_out(self, plan: BindingPlan) -> None:
        started = time.perf_counter()
        try:
            outcome = await self._binder.carry_out(plan)
            if outcome not in (BindingOutcome.BOUND, BindingOutcome.OTHERWISE, BindingOutcome.GONE):
                await self._ledger_watch.refresh()
        except Exception as error:
            # What is not of the domain is a bug: show where. The pod must have its next turn.
            is_bug = not isinstance(error, DovetailError)
            LOG.warning(
                "plan failed",
                pod=plan.pod.key,
                node=plan.node,
                error=repr(error),
                exc_info=error if is_bug else None,
            )
            outcome = BindingOutcome.FAILED
        metrics.ATTEMPTS.labels(outcome.value).inc()
        if outcome is BindingOutcome.BOUND:
            metrics.OBSERVERS["total"](time.perf_counter() - started)
            self._queue.drop(plan.uid)
            self._reporter.scheduled(plan.pod, plan.node, plan.holdings)
            return
        self._state.forget(plan.uid)
        self._again(plan, outcome)

    def _again(self, plan: BindingPlan, outcome: BindingOutcome) -> None:
        """What becomes of a pod whose plan came to nothing."""
        entry, now = self._queue.find(plan.uid), self._clock()
        if entry is None:
            return
        if outcome in (BindingOutcome.GONE, BindingOutcome.OTHERWISE):
            self._queue.drop(plan.uid)
            return
        if outcome is BindingOutcome.TAKEN:
            # The ledger may know less of the node than we do.
            self._publisher.again(plan.node)
        is_quick = (
            outcome in (BindingOutcome.TAKEN, BindingOutcome.CLAIMED)
            and entry.conflicts < QUICK_TRIES
        )
        if is_quick:
            self._queue.retry(plan.uid)
        else:
            self._queue.back_off(plan.uid, now)
