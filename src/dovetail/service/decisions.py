"""Decision records: what was asked, chosen and passed over, as `service.claims` writes them down.

The ledger holds them as JSON documents; GET /dovetail/v1/decisions shows them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block

SHOWN_CANDIDATES = 10
"""Candidates of one answer that a decision tells."""

CLAIMED = "claimed"

Scores = Mapping[str, int]
Allocations = dict[str, dict[str, int]]
"""Amounts by class, by UUID of the provider."""


class CandidateAnswer(msgspec.Struct, frozen=True):
    """An answer as far as it is remembered: what was asked, and its first candidates."""

    query: str
    candidates: int
    shares: Sequence[Mapping[str, int]]
    """What each slot takes."""
    providers: Sequence[Sequence[bytes]]
    """By candidate the provider of each slot."""
    scores: Sequence[Scores] = ()

    def allocations(self, position: int) -> Allocations:
        found: Allocations = {}
        for uuid, share in zip(self.providers[position], self.shares, strict=True):
            held = found.setdefault(uuid.decode(), {}) if share else {}
            for name, amount in share.items():
                held[name] = held.get(name, 0) + amount
        return found


class RankedOption(msgspec.Struct, frozen=True, omit_defaults=True):
    position: int
    """From 1, in the order of the answer."""
    allocations: Allocations
    scores: Scores = {}


class ClaimDecision(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    outcome: str
    candidates: int
    chosen: RankedOption
    passed_over: Sequence[RankedOption] = ()
    words: str

    def encoded(self) -> str:
        return msgspec.json.encode(self).decode()


def answer_of(
    query: str, search: Search, found: Block, scores: Sequence[Scores] = ()
) -> CandidateAnswer:
    return CandidateAnswer(
        query,
        len(found),
        [slot.resources for slot in search.slots],
        search.snapshot.uuids.values[found[:SHOWN_CANDIDATES]].tolist(),
        scores[:SHOWN_CANDIDATES],
    )


def decision_of(
    answer: CandidateAnswer, position: int, refusal: str | None = None
) -> ClaimDecision:
    """The decision for the candidate at this position; `refusal` says why it was not granted."""
    options = [
        RankedOption(at + 1, answer.allocations(at), answer.scores[at] if answer.scores else {})
        for at in range(len(answer.providers))
    ]
    chosen = options.pop(position)
    return ClaimDecision(
        query=answer.query,
        outcome=outcome_of(refusal),
        candidates=answer.candidates,
        chosen=chosen,
        passed_over=options,
        words=words_of(answer, chosen, refusal),
    )


def queries_followed(
    documents: Iterable[tuple[str, str]], held: Mapping[str, Allocations]
) -> dict[str, str]:
    """By consumer: the query of the claim that gave it what it holds, if that is on record.

    `documents`: consumer and decision, newest first. Of a consumer that holds something else by now
    than it claimed last, what it would ask for is not known.
    """
    found: dict[str, str] = {}
    looked_at: set[str] = set()
    for consumer, document in documents:
        if consumer in looked_at:
            continue
        decision = msgspec.json.decode(document, type=ClaimDecision)
        if decision.outcome != CLAIMED:
            continue
        looked_at.add(consumer)
        if decision.chosen.allocations == held.get(consumer):
            found[consumer] = decision.query
    return found


def outcome_of(refusal: str | None) -> str:
    return CLAIMED if refusal is None else "refused"


def words_of(answer: CandidateAnswer, chosen: RankedOption, refusal: str | None) -> str:
    of = f"candidate {chosen.position} of {answer.candidates}"
    total = chosen.scores.get("total")
    why = f", score {total}" if total is not None else ""
    if refusal is not None:
        return f"Asked for {of}{why}, and refused: {refusal}"
    return f"Took {of}{why}."
