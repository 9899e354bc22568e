"""Scheduling loop: takes pods from the queue, decides, and has plans carried out.

The scheduler runs it on every replica; it decides while this replica leads and is prepared. A
decision takes no I/O and counts at once, so the next one need not wait for what the last one has to
write: many plans are being carried out while decisions go on. One turn of a pod:

    1. what it requires      pod_requirements; a pod that can never be placed is refused here
    2. a claim of its own    if the ledger has one, its plan is resumed, or the claim given back
    3. the decision          decide: a node and its devices, or why there is none
    4. refused               the pod is parked until what it lacks may have changed, and told why
    5. decided               the plan counts in the state; binding carries it out beside the loop
    6. what became of it     bound, gone: dropped; taken, claimed: again at once; else: backs off
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.classes.controller import ClassController
from dovetail.kube.runtime.leader import Leader
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import Choice, Decider, Refusal, holdings_for
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.kube.scheduler.dra.claim_writer import ClaimRefused
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.plans import BindingPlan, fence_of, unwritable_reason
from dovetail.kube.scheduler.pod_requirements import (
    PodRequirements,
    RequirementsCache,
    UnschedulablePod,
)
from dovetail.kube.scheduler.queue import QueuedPod, SchedulingQueue, Wake
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.state import ClusterState
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import Pod

LOG = structlog.get_logger("dovetail.kube.scheduler")

MOST_BINDINGS = 64
"""Plans that are being carried out at a time."""
YIELD_AFTER_SECONDS = 0.005
"""Of decisions in a row, after which the loop yields to others on the event loop."""
EARLY_PERIOD_SECONDS, EARLY_SECONDS = 0.1, 0.05
"""In each period there is so much time for pods that were woken and would have to wait."""
QUICK_TRIES = 5
"""Turns of a pod that follow each other at once, when others are faster; then it waits."""
UNSEEN_DEVICE_TRIES = 3
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
        classes: ClassController,
        leader: Leader,
        timings: Timings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._queue = queue
        self._decider = decider
        self._binder = binder
        self._claims = claims
        self._ledger_watch = ledger_watch
        self._reporter = reporter
        self._classes = classes
        self._leader = leader
        self._timings = timings
        self._clock = clock
        self._requirements = RequirementsCache()
        self._bindings: set[asyncio.Task[None]] = set()
        self._unparked_at = 0.0
        self._looked_at = 0.0
        self._early_seconds = 0.0
        """Left for early turns in this period."""
        self._early_period_ends = 0.0
        self.is_prepared = False
        """Whether the ledger was compared with the pods since this replica began to lead."""

    def may_decide(self) -> bool:
        return self.is_prepared and self._leader.leading

    async def run(self) -> None:
        """Until cancelled; then what is being bound has some time to come to its end."""
        try:
            while True:
                # 1. Every pod whose turn it is.
                await self._decide_all()
                # 2. Sleep until something happens, or a back-off ends.
                self._queue.woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._idle_seconds()):
                        await self._queue.woken.wait()
                # 3. Now and then, pods that were forgotten.
                if self._clock() >= self._looked_at + self._timings.longest_wait:
                    self._looked_at = self._clock()
                    self._look_afresh(self._looked_at)
        finally:
            await self._drain()

    def _look_afresh(self, now: float) -> None:
        """At pods that waited so long that what would help them may have been missed."""
        if self._queue.unpark_stale(now):
            self._decider.forget_refusals()

    async def _drain(self) -> None:
        if self._bindings:
            await asyncio.wait(self._bindings, timeout=self._timings.drain)
        for task in self._bindings:
            task.cancel()

    def _idle_seconds(self) -> float:
        """How long there is nothing to do, if nothing happens."""
        if not self._has_leave():
            return self._timings.longest_wait
        now, due = self._clock(), self._queue.next_due()
        longest = self._timings.longest_wait
        if self._queue.changes:
            longest = max(0.0, self._unparked_at + self._timings.gather_changes - now)
        if self._queue.has_woken:
            longest = min(longest, max(0.0, self._early_period_ends - now))
        return longest if due is None else max(0.0, min(longest, due - now))

    def _has_leave(self) -> bool:
        """Whether another decision may be made now; whoever changes that wakes the queue."""
        return self.may_decide() and len(self._bindings) < MOST_BINDINGS

    async def _decide_all(self) -> None:
        yield_at = self._clock() + YIELD_AFTER_SECONDS
        while self._has_leave():
            now = self._clock()
            if self._queue.changes and now >= self._unparked_at + self._timings.gather_changes:
                self._queue.unpark_helped(now)
                self._unparked_at = now
            entry = self._queue.take(now)
            if entry is not None:
                self._turn(entry)
            elif not self._take_early_turn(now):
                return
            if now >= yield_at:
                await asyncio.sleep(0)
                yield_at = self._clock() + YIELD_AFTER_SECONDS

    def _take_early_turn(self, now: float) -> bool:
        """Nobody is ready: a pod that was woken need not wait, as long as such turns take no more
        than their share of the time. Else ten thousand that nothing helps would take all of it."""
        if now >= self._early_period_ends:
            self._early_period_ends = now + EARLY_PERIOD_SECONDS
            self._early_seconds = EARLY_SECONDS
        entry = self._queue.take_early() if self._early_seconds > 0 else None
        if entry is None:
            return False
        self._turn(entry)
        self._early_seconds -= self._clock() - now
        return True

    def _turn(self, entry: QueuedPod) -> None:
        pod = self._state.pods.get(entry.pod.metadata.uid, entry.pod)
        try:
            self._decide_and_start(entry, pod)
        except Exception as error:
            # A bug. It must not keep the others from being placed, as it would again and again.
            LOG.exception("pod not decided", pod=pod.key)
            metrics.ATTEMPTS.labels(BindingOutcome.FAILED.value).inc()
            self._queue.back_off(pod.metadata.uid, self._clock())
            self._reporter.report_bug(pod, error)

    def _decide_and_start(self, entry: QueuedPod, pod: Pod) -> None:
        try:
            with metrics.timed("decide"):
                required = self._requirements.of(pod)
                found = self._decision(entry, pod, required)
        except UnschedulablePod as error:
            self._refuse(pod, Wake(0), str(error))
            return
        match found:
            case Refusal(why=why):
                self._refuse(pod, required.wake_on, why)
            case None:
                pass
            case BindingPlan():
                self._start_binding(found)
            case _:
                plan = self._state.plan(pod, found.node, found.holdings)
                if why := unwritable_reason(plan):
                    self._refuse(pod, required.wake_on, why)
                else:
                    self._start_binding(plan)

    def _decision(
        self, entry: QueuedPod, pod: Pod, required: PodRequirements
    ) -> Choice | Refusal | BindingPlan | None:
        """None: there will be one later."""
        claimed = self._state.holders.claim_of(pod.metadata.uid)
        if required.device_requests and (why := self._state.mapped_reason(required.pod_request)):
            if claimed is None:
                return Refusal(why)
            self._start_release(pod, why)
            return None
        if claimed is None:
            return self._decider.decide(required)
        if not required.device_requests:
            # Not ours to finish or to give back: a unit of a machine, or whatever others claimed.
            return self._decider.decide_with_claim(required, pod.metadata.uid)
        return self._resumed_plan(entry, pod, required, *claimed)

    def _resumed_plan(
        self, entry: QueuedPod, pod: Pod, required: PodRequirements, node: str, claimed: Amounts
    ) -> BindingPlan | None:
        """The plan that a claim was made for; None: it is given back, or waited for."""
        if not self._state.has_node(node):
            self._start_release(pod, f"node {node} is no more")
        elif fence_of(pod):
            # Who put the fence may still be about to release whatever is claimed.
            self._start_release(pod, f"the claim on {node} is older than the last one given back")
        else:
            holdings = holdings_for(self._state, required.device_requests, node, claimed)
            if holdings is not None:
                return self._state.plan(pod, node, holdings, is_claimed=True)
            if entry.attempts > UNSEEN_DEVICE_TRIES:
                self._start_release(pod, f"devices claimed on {node} are no longer those asked for")
            else:
                self._queue.back_off(pod.metadata.uid, self._clock())
        return None

    def _refuse(self, pod: Pod, wake_on: Wake, why: str) -> None:
        metrics.ATTEMPTS.labels("refused").inc()
        self._queue.park(pod.metadata.uid, self._clock(), wake_on)
        self._reporter.report_refusal(pod, why)

    def _start_binding(self, plan: BindingPlan) -> None:
        try:
            self._state.assume(plan)
        except Exception:
            # Half a plan must not count: nobody will carry it out.
            self._state.forget(plan.uid)
            raise
        self._start(self._carry_out(plan))

    def _start_release(self, pod: Pod, why: str) -> None:
        self._start(self._release_claim(pod, why))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._bindings.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._bindings.discard(task)
        self._queue.wake()

    async def _release_claim(self, pod: Pod, why: str) -> None:
        uid = pod.metadata.uid
        try:
            await self._claims.release_fenced(pod, why)
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
            if is_bug:
                self._reporter.report_bug(plan.pod, error)
            elif isinstance(error, ClaimRefused):
                self._reporter.report_refusal(plan.pod, str(error))
            outcome = BindingOutcome.FAILED
        metrics.ATTEMPTS.labels(outcome.value).inc()
        if outcome is BindingOutcome.BOUND:
            metrics.OBSERVERS["total"](time.perf_counter() - started)
            self._queue.drop(plan.uid)
            self._reporter.report_scheduled(plan)
            return
        self._state.forget(plan.uid)
        self._requeue(plan, outcome)

    def _requeue(self, plan: BindingPlan, outcome: BindingOutcome) -> None:
        """What becomes of a pod whose plan came to nothing."""
        entry, now = self._queue.find(plan.uid), self._clock()
        if entry is None:
            return
        if outcome in (BindingOutcome.GONE, BindingOutcome.OTHERWISE):
            self._queue.drop(plan.uid)
            return
        if outcome is BindingOutcome.TAKEN:
            # The ledger may know less of the node than we do.
            self._classes.republish(plan.node)
        is_quick = (
            outcome in (BindingOutcome.TAKEN, BindingOutcome.CLAIMED)
            and entry.conflicts < QUICK_TRIES
        )
        if is_quick:
            self._queue.retry(plan.uid)
        else:
            self._queue.back_off(plan.uid, now)
