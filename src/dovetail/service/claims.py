"""Claiming: the one way in which hardware is taken and given back, whoever asks.

Placement's PUT and POST /allocations, POST /dovetail/v1/claims (by way of `claiming.best`), the
device claims of schedulers and the units of machines all come here. Each claim is one transaction,
which checks, writes and records the decision where there was one, and is counted once in
`claims_total` by how it ends:

    granted     it holds
    refused     there was no room (Refused, DeviceTaken, UnitTaken), or nothing fits (NothingFits)
    conflict    somebody was faster (StaleGeneration, AlreadyExists, OtherClaim, Outrun)
    invalid     no state of the ledger could make it right (any other error of the domain)
    failed      the ledger could not be used, or a bug

A release takes nothing and decides nothing: it is neither recorded nor counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from dovetail.aio.thread_results import result_of
from dovetail.core.claim import Claim
from dovetail.core.errors import (
    AlreadyExists,
    DovetailError,
    NotFound,
    Refused,
    StaleGeneration,
)
from dovetail.ledger import Ledger, LedgerBusy, Transaction, claims, decisions
from dovetail.ledger.claims import UnknownProvider
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.machines.units import OtherClaim, UnitTaken
from dovetail.service.decisions import CandidateAnswer, ClaimDecision, decision_of
from dovetail.service.metrics import CLAIMS
from dovetail.service.recent_answers import RecentAnswers
from dovetail.telemetry.phases import phase

UNNAMED_OWNER = "00000000-0000-0000-0000-000000000000"
"""Project and user of consumers whose client names none."""

Take = Callable[[Transaction], None]
"""Writes claims, all or nothing."""
ConsumerDecisions = Iterable[tuple[str, ClaimDecision]]
"""Decisions, each with the consumer it is about."""
Decide = Callable[[Transaction, str | None], ConsumerDecisions]
"""What to write down of a claim that was granted, or refused for this reason."""


class NothingFits(DovetailError):
    """There is no place for the request now."""


class Outrun(DovetailError):
    """There was room, and others were faster for as long as a claim may take."""


class AlreadyClaimed(AlreadyExists):
    """The consumer holds something already."""

    def __init__(self, consumer: str) -> None:
        super().__init__(f"{consumer} holds something already")


class DeviceTaken(DovetailError):
    """A device has too few units left, or is there no more."""


NOT_GRANTED = (
    UnknownProvider,
    StaleGeneration,
    OtherClaim,
    Refused,
    NotFound,
    DeviceTaken,
    UnitTaken,
)
"""How the ledger turns down a claim."""
TAKEN_MEANWHILE = (Refused, UnknownProvider)
"""How a claim fails if the place was taken, or taken away, since it was found."""
CONFLICTS = (StaleGeneration, AlreadyExists, OtherClaim, Outrun)
REFUSALS = (Refused, DeviceTaken, UnitTaken, NothingFits)


async def claim(ledger: Ledger, recent: RecentAnswers, wanted: Sequence[Claim]) -> None:
    """Make each claim all that its consumer holds, all or nothing. Raises NOT_GRANTED."""
    answers = [(each.consumer, recent.recall(each.allocations)) for each in wanted]
    chosen = [(consumer, *answer) for consumer, answer in answers if answer is not None]
    with counting():
        if len(wanted) == len(chosen) == 1:
            await claim_chosen(ledger, wanted[0], *chosen[0][1:])
            return
        await take_recorded(
            ledger,
            lambda tx: claims.replace(tx, wanted),
            lambda _, refusal: decisions_of(chosen, refusal),
        )


async def claim_chosen(
    ledger: Ledger, wanted: Claim, answer: CandidateAnswer, position: int
) -> None:
    """One claim of one candidate: claim and decision are written together."""

    def take_chosen(tx: Transaction) -> None:
        claims.take(tx, wanted, decision_of(answer, position).encoded())

    try:
        await write(ledger, take_chosen)
    except NOT_GRANTED as error:
        refused = [(wanted.consumer, decision_of(answer, position, str(error)))]
        record_refusal(ledger, lambda _: refused)
        raise


def decisions_of(
    chosen: Iterable[tuple[str, CandidateAnswer, int]], refusal: str | None
) -> Iterator[tuple[str, ClaimDecision]]:
    for consumer, answer, position in chosen:
        yield consumer, decision_of(answer, position, refusal)


async def claim_named(ledger: Ledger, take: Take, decide: Decide) -> None:
    """Claim what only the transaction can look up, such as devices by name. Raises NOT_GRANTED."""
    with counting():
        await take_recorded(ledger, take, decide)


async def release(ledger: Ledger, consumer: str) -> bool:
    """Give back everything; False if nothing was held."""
    return await write(ledger, lambda tx: claims.release(tx, consumer))


async def take_recorded(ledger: Ledger, take: Take, decide: Decide) -> None:
    def take_and_record(tx: Transaction) -> None:
        take(tx)
        record(tx, decide(tx, None))

    try:
        await write(ledger, take_and_record)
    except NOT_GRANTED as error:
        refusal = str(error)
        record_refusal(ledger, lambda tx: decide(tx, refusal))
        raise


def record_refusal(ledger: Ledger, to_record: Callable[[Transaction], ConsumerDecisions]) -> None:
    """Nobody waits for it: the caller has its answer, and the ledger holds nothing of the claim."""
    ledger.write(lambda tx: record(tx, to_record(tx)))


def record(tx: Transaction, to_record: ConsumerDecisions) -> None:
    for consumer, decision in to_record:
        decisions.record(tx, consumer, decision.encoded())


async def write(ledger: Ledger, operation: Operation[T]) -> T:
    with phase("write"):
        return await result_of(ledger.write(operation))


@contextmanager
def counting() -> Iterator[None]:
    """Count one claim by how it ends."""
    try:
        yield
    except Exception as error:
        CLAIMS.labels(outcome_of(error)).inc()
        raise
    CLAIMS.labels("granted").inc()


def outcome_of(error: Exception) -> str:
    if isinstance(error, LedgerBusy) or not isinstance(error, DovetailError):
        return "failed"
    if isinstance(error, CONFLICTS):
        return "conflict"
    return "refused" if isinstance(error, REFUSALS) else "invalid"
