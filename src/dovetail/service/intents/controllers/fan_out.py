"""Fan-out over all placement controllers of a group: asked at once, each with its own deadline.

`service/intents` calls it for every plan. What comes back is in the order of the controllers'
names, whoever answered first. A controller that does not answer in time, or not with an answer, is
a failure, which its policy makes a refusal of the plan, or not:

    refuse        the plan is refused, naming the controller and its deadline
    ignore        the plan goes on without it, and says so
    lastAnswer    what it said last about this group counts; without that, as refuse

Built-in ones compute in threads. `hpa` may take long: it is given with a budget of its own, and a
check that it calls now and then, which raises when nobody waits any more. There are few threads;
whoever finds them busy waits, within its deadline.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from dovetail.core.errors import DovetailError
from dovetail.intents.affinity import AFFINITY, affinity_answer
from dovetail.intents.candidates.partitions import ControllerAnswer
from dovetail.intents.controllers import (
    HPA,
    CallTerms,
    ControllerCall,
    ControllerContract,
    FailurePolicy,
    Roster,
    terms_of,
)
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.generic import GENERIC, generic_answer
from dovetail.intents.group import DeploymentGroup
from dovetail.ledger import Ledger
from dovetail.service.intents.controllers import kept_answers
from dovetail.service.intents.controllers.external import PlacementCaller
from dovetail.service.intents.controllers.metrics import CALLS, DURATION
from dovetail.service.intents.controllers.translation import BadAnswer
from dovetail.telemetry.tracing import TRACING
from dovetail.wire.client import CallFailure, EndpointError

LOG = structlog.get_logger("dovetail.controllers")

THREADS = 4
LATE = "it did not answer in time"
UNREGISTERED, UNTYPED = "unregistered", "untyped"


class HpaResult(Protocol):
    """What the built-in `hpa` finds; a plan reads more of it than its answer."""

    @property
    def answer(self) -> ControllerAnswer: ...


H = TypeVar("H", bound=HpaResult)
HpaCompute = Callable[[DeploymentGroup, FleetSnapshot, Callable[[], None]], H]
"""With a check to be called now and then: what that raises is not to be caught."""
Ask = Callable[[float], Awaitable[ControllerAnswer]]
"""Takes the seconds that there are."""


class Unwanted(Exception):
    """Raised in a thread for whose result nobody waits."""


class ControllerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A controller that did not answer, and what became of that."""

    controller: str
    token: str
    """Stable, for programs: one of CallFailure, UNREGISTERED or UNTYPED."""
    words: str
    """A sentence that names the controller, what happened, and what was done about it."""
    is_refusal: bool
    """There is no plan without this controller."""


class ControllerAnswers(msgspec.Struct, Generic[H], frozen=True, kw_only=True):
    """What all of them said; both in the order of their names."""

    answers: tuple[ControllerAnswer, ...]
    failures: tuple[ControllerFailure, ...] = ()
    hpa: H | None = None
    """All that the built-in `hpa` found; None if it failed."""

    @property
    def refusals(self) -> tuple[ControllerFailure, ...]:
        """If there are any, nothing may be placed by these answers."""
        return tuple(each for each in self.failures if each.is_refusal)


class _Asked(msgspec.Struct, frozen=True):
    """One controller, and how it is asked."""

    name: str
    kind: str
    """Of metrics: a name of a built-in one, or a contract."""
    terms: CallTerms
    ask: Ask

    @property
    def is_kept(self) -> bool:
        """What `hpa` finds is more than its answer, and good at that moment only."""
        return self.terms.policy is FailurePolicy.LAST_ANSWER and self.name != HPA


class ControllerFanOut(Generic[H]):
    """Asks all controllers of a group."""

    def __init__(
        self,
        ledger: Ledger,
        hpa: HpaCompute[H],
        callers: Mapping[ControllerContract, PlacementCaller],
        terms: CallTerms | None = None,
    ) -> None:
        """`terms` count where a registration does not say otherwise."""
        self._ledger, self._hpa, self._callers = ledger, hpa, callers
        self._terms = terms or CallTerms()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="controller")

    def close(self) -> None:
        """Without waiting for what nobody waits for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def answers(
        self, group: DeploymentGroup, fleet: FleetSnapshot, roster: Roster
    ) -> ControllerAnswers[H]:
        found: list[H] = []
        asked = [*self._built_in(group, fleet, roster, found)]
        asked += [self._external(call, group, fleet) for call in roster.placement]
        outcomes = await asyncio.gather(*(self._outcome(each, group) for each in asked))
        answers = [answer for answer, _ in outcomes if answer]
        failures = [failure for _, failure in outcomes if failure]
        failures += unasked(roster)
        return ControllerAnswers(
            answers=tuple(sorted(answers, key=lambda each: each.controller)),
            failures=tuple(sorted(failures, key=lambda each: each.controller)),
            # One that was late is there, too, and is not used.
            hpa=found[0] if any(each.controller == HPA for each in answers) else None,
        )

    def _built_in(
        self, group: DeploymentGroup, fleet: FleetSnapshot, roster: Roster, found: list[H]
    ) -> Iterator[_Asked]:
        def hpa(check: Callable[[], None]) -> ControllerAnswer:
            found.append(self._hpa(group, fleet, check))
            return found[0].answer

        generic = self._in_thread(lambda _: generic_answer(group, fleet.clusters))
        yield _Asked(GENERIC, GENERIC, self._terms, generic)
        affinity = self._in_thread(lambda _: affinity_answer(group))
        yield _Asked(AFFINITY, AFFINITY, self._terms, affinity)
        yield _Asked(HPA, HPA, terms_of(roster.hpa, self._terms), self._in_thread(hpa))

    def _in_thread(self, compute: Callable[[Callable[[], None]], ControllerAnswer]) -> Ask:
        unwanted = threading.Event()

        def check() -> None:
            if unwanted.is_set():
                raise Unwanted

        async def ask(_: float) -> ControllerAnswer:
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._threads, compute, check)
            except asyncio.CancelledError:
                # Nobody waits any more. What has answered may be asked on, so it is not set then.
                unwanted.set()
                raise

        return ask

    def _external(
        self, call: ControllerCall, group: DeploymentGroup, fleet: FleetSnapshot
    ) -> _Asked:
        caller = self._callers.get(call.spec.contract)

        async def ask(seconds: float) -> ControllerAnswer:
            if caller is None:
                words = f"nothing is set up for controllers of {call.spec.contract}"
                raise EndpointError(CallFailure.FAILED, words)
            return await caller.answer(call, group, fleet, seconds)

        return _Asked(call.name, call.spec.contract, terms_of(call.spec, self._terms), ask)

    async def _outcome(
        self, asked: _Asked, group: DeploymentGroup
    ) -> tuple[ControllerAnswer | None, ControllerFailure | None]:
        seconds = asked.terms.deadline_seconds
        started = perf_counter()
        with TRACING.phase(f"controller {asked.name}"):
            try:
                async with asyncio.timeout(seconds):
                    answer = await asked.ask(seconds)
            except TimeoutError:
                token, why = CallFailure.TIMED_OUT, LATE
            except EndpointError as error:
                token = error.failure
                why = LATE if token is CallFailure.TIMED_OUT else str(error)
            except BadAnswer as error:
                token, why = CallFailure.GARBAGE, f"its answer {error}"
            except DovetailError as error:
                token, why = CallFailure.FAILED, str(error)
            except Exception as error:
                LOG.exception("controller failed", controller=asked.name)
                token, why = CallFailure.FAILED, f"it failed: {type(error).__name__}"
            else:
                CALLS.labels(asked.kind, "answered").inc()
                DURATION.labels(asked.kind).observe(perf_counter() - started)
                await self._keep(asked, group, answer)
                return answer, None
        CALLS.labels(asked.kind, token.value).inc()
        return await self._without(asked, group, token, why)

    async def _keep(self, asked: _Asked, group: DeploymentGroup, answer: ControllerAnswer) -> None:
        if asked.is_kept:
            try:
                await kept_answers.keep(self._ledger, group, answer)
            except DovetailError as error:
                LOG.warning("answer not kept", controller=asked.name, error=str(error))

    async def _without(
        self, asked: _Asked, group: DeploymentGroup, token: CallFailure, why: str
    ) -> tuple[ControllerAnswer | None, ControllerFailure]:
        """What the policy makes of a controller that has no answer."""
        seconds = asked.terms.deadline_seconds
        what = f"controller {asked.name} (deadline {seconds:g} s): {why}"
        answer, done, is_refusal = None, "nothing is placed without it", True
        if asked.terms.policy is FailurePolicy.IGNORE:
            done, is_refusal = "left out, by its policy", False
        elif asked.is_kept:
            last = await kept_answers.last_answer(self._ledger, group, asked.name)
            done = "nothing is placed without it, and it never answered about these apps"
            if last is not None:
                answer, when = last[0], datetime.fromtimestamp(last[1], UTC)
                done, is_refusal = f"its answer of {when.isoformat()} is used, by its policy", False
        failure = ControllerFailure(
            controller=asked.name, token=token.value, words=f"{what}; {done}", is_refusal=is_refusal
        )
        LOG.warning("controller did not answer", **msgspec.structs.asdict(failure))
        return answer, failure


def unasked(roster: Roster) -> Iterator[ControllerFailure]:
    """Controllers that a group names and nobody can ask."""
    for name in roster.unregistered:
        words = f"controller {name}: the group names it, and it is not registered"
        yield ControllerFailure(controller=name, token=UNREGISTERED, words=words, is_refusal=True)
    for name in roster.untyped:
        words = f"controller {name}: it is registered without a type, and was not called"
        yield ControllerFailure(controller=name, token=UNTYPED, words=words, is_refusal=False)
