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
from dovetail.kube.scheduler.binding import Binder, Outcome
from dovetail.kube.scheduler.claims import Claims
from dovetail.kube.scheduler.decide import Decider, Refusal
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.kube.scheduler.ledger_watch import LedgerView
from dovetail.kube.scheduler.plans import Plan, fence_of
from dovetail.kube.scheduler.pod_requirements import BadPod, Want, Wants
from dovetail.kube.scheduler.queue import Entry, Queue, Wake
from dovetail.kube.scheduler.reporting import Teller
from dovetail.kube.scheduler.resume import holdings_for
from dovetail.kube.scheduler.state import State
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


class Cycle:
    def __init__(
        self,
        *,
        state: State,
        queue: Queue,
        decider: Decider,
        binder: Binder,
        claims: Claims,
        view: LedgerView,
        teller: Teller,
        publisher: Publisher[tuple[Device, ...]],
        may_decide: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._queue = queue
        self._decider = decider
        self._binder = binder
        self._claims = claims
        self._view = view
        self._teller = teller
        self._publisher = publisher
        self._may_decide = may_decide
        self._clock = clock
        self._wants = Wants()
        self._flights: set[asyncio.Task[None]] = set()
        self._stir = asyncio.Event()
        self._news = Wake(0)
        self._woken = 0.0
        self._looked = 0.0

    def stir(self) -> None:
        """There may be something to do."""
        self._stir.set()

    def helped(self, what: Wake) -> None:
        self._news |= what
        self._stir.set()

    async def run(self) -> None:
        """Decide until cancelled; then `drain`."""
        while True:
            await self._decide_all()
            self._stir.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience()):
                    await self._stir.wait()
            if self._clock() >= self._looked + LONGEST_WAIT:
                self._looked = self._clock()
                self._queue.wake_stale(self._looked)

    async def drain(self, seconds: float) -> None:
        """Let what is in flight come to its end."""
        if self._flights:
            await asyncio.wait(self._flights, timeout=seconds)
        for flight in self._flights:
            flight.cancel()

    def _patience(self) -> float:
        """How long there is nothing to do, if nothing happens."""
        if not self._has_leave():
            return LONGEST_WAIT
        now, due = self._clock(), self._queue.next_due()
        longest = max(0.0, self._woken + WAKE_SECONDS - now) if self._news else LONGEST_WAIT
        return longest if due is None else max(0.0, min(longest, due - now))

    def _has_leave(self) -> bool:
        """Whether another decision may be made now; whoever changes that stirs."""
        return self._may_decide() and len(self._flights) < IN_FLIGHT

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

    def _turn(self, entry: Entry) -> None:
        pod = self._state.pods.get(entry.pod.metadata.uid, entry.pod)
        try:
            with metrics.timed("decide"):
                want = self._wants.of(pod)
                claimed = self._state.holders.claimed(pod.metadata.uid)
                found = (
                    self._decider.decide(want)
                    if claimed is None
                    else self._adopted(entry, pod, want, *claimed)
                )
        except BadPod as error:
            self._refuse(pod, Wake(0), str(error))
            return
        except Exception:
            # A bug. It must not keep the others from being placed, as it would again and again.
            LOG.exception("pod not decided", pod=pod.key)
            metrics.ATTEMPTS.labels(Outcome.FAILED.value).inc()
            self._queue.back_off(pod.metadata.uid, self._clock())
            return
        match found:
            case Refusal(why=why):
                self._refuse(pod, want.hopes, why)
            case None:
                pass
            case Plan():
                self._fly(found)
            case _:
                self._fly(Plan(pod, found.node, found.holdings))

    def _adopted(
        self, entry: Entry, pod: Pod, want: Want, node: str, claimed: Amounts
    ) -> Plan | None:
        """The plan that a claim was made for; None: it is given back, or waited for."""
        if not self._state.has_node(node):
            self._give_back(pod, f"node {node} is no more")
        elif fence_of(pod):
            # Who put the fence may still be about to release whatever is claimed.
            self._give_back(pod, f"the claim on {node} is older than the last one given back")
        else:
            holdings = holdings_for(self._state, want.asks, node, claimed)
            if holdings is not None:
                return Plan(pod, node, holdings, is_claimed=True)
            if entry.attempts > PATIENCE:
                self._give_back(pod, f"devices claimed on {node} are no longer those asked for")
            else:
                self._queue.back_off(pod.metadata.uid, self._clock())
        return None

    def _refuse(self, pod: Pod, hopes: Wake, why: str) -> None:
        metrics.ATTEMPTS.labels("refused").inc()
        self._queue.park(pod.metadata.uid, self._clock(), hopes)
        self._teller.refused(pod, why)

    def _fly(self, plan: Plan) -> None:
        self._state.assume(plan)
        self._start(self._carry_out(plan))

    def _give_back(self, pod: Pod, why: str) -> None:
        self._start(self._given_back(pod, why))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        flight = asyncio.get_running_loop().create_task(work)
        self._flights.add(flight)
        flight.add_done_callback(self._landed)

    def _landed(self, flight: asyncio.Task[None]) -> None:
        self._flights.discard(flight)
        self._stir.set()

    async def _given_back(self, pod: Pod, why: str) -> None:
        uid = pod.metadata.uid
        try:
            await self._claims.give_back(pod, why)
            await self._view.refresh()
        except DovetailError as error:
            LOG.warning("claim not given back", pod=pod.key, error=str(error))
        finally:
            self._queue.back_off(uid, self._clock())

    async def _carry_out(self, plan: Plan) -> None:
        started = time.perf_counter()
        try:
            outcome = await self._binder.carry_out(plan)
            if outcome not in (Outcome.BOUND, Outcome.OTHERWISE, Outcome.GONE):
                await self._view.refresh()
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
            outcome = Outcome.FAILED
        metrics.ATTEMPTS.labels(outcome.value).inc()
        if outcome is Outcome.BOUND:
            metrics.OBSERVERS["total"](time.perf_counter() - started)
            self._queue.drop(plan.uid)
            self._teller.scheduled(plan.pod, plan.node, plan.holdings)
            return
        self._state.forget(plan.uid)
        self._again(plan, outcome)

    def _again(self, plan: Plan, outcome: Outcome) -> None:
        """What becomes of a pod whose plan came to nothing."""
        entry, now = self._queue.find(plan.uid), self._clock()
        if entry is None:
            return
        if outcome in (Outcome.GONE, Outcome.OTHERWISE):
            self._queue.drop(plan.uid)
            return
        if outcome is Outcome.TAKEN:
            # The ledger may know less of the node than we do.
            self._publisher.again(plan.node)
        is_quick = outcome in (Outcome.TAKEN, Outcome.CLAIMED) and entry.conflicts < QUICK_TRIES
        if is_quick:
            self._queue.retry(plan.uid)
        else:
            self._queue.back_off(plan.uid, now)
