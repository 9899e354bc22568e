"""Verdicts: both servers are asked one question, and the two answers are held against the oracle.

Candidates: Dovetail must give the right answer exactly; the reference must too, unless one of its
known defects explains the difference. Anything else: the two answers must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.differential import defects
from tests.differential.comparison import Expectation, Found, alike, found, headers_alike
from tests.differential.oracle import Oracle
from tests.differential.query import Query
from tests.differential.wire import Answer, Call, Pair

UNEXPLAINED = "the reference is not right, for no known reason"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fault` says what is wrong with the case; `numbers` are the reference's defects met."""

    fault: str | None = None
    numbers: frozenset[int] = frozenset()
    answers: tuple[Answer, Answer] | None = None


def judge(pair: Pair, oracle: Oracle, question: Query | Call) -> Verdict:
    if isinstance(question, Call):
        return _judge_call(pair, oracle, question)
    answers = pair.ask(question.unlimited().call(), question.call())
    theirs, ours = answers
    wire = Expectation(oracle, question)
    right = wire.found(oracle.candidates(question))
    if fault := _fault(wire, ours, right):
        return Verdict(fault, answers=answers)
    given = found(theirs, question.minor) if theirs.status == 200 else None
    if given == right:
        same = headers_alike(theirs, ours)
        return Verdict(None if same else "headers differ", answers=answers)
    numbers = defects.explain(oracle, question, theirs.status, given)
    return Verdict(None if numbers else UNEXPLAINED, numbers, answers)


def _fault(wire: Expectation, ours: Answer, right: Found) -> str | None:
    """What is wrong with Dovetail's answer."""
    if ours.status != 200:
        return f"dovetail answers {ours.status}"
    try:
        given = found(ours, wire.query.minor)
    except (KeyError, TypeError, ValueError) as error:
        return f"dovetail's answer is misshapen: {error!r}"
    if wire.query.limit:
        return wire.limited_fault(given, right)
    if given.requests != right.requests:
        lacking, beyond = right.requests - given.requests, given.requests - right.requests
        return f"dovetail lacks {lacking.total()} candidates and has {beyond.total()} beyond"
    return None if given.summaries == right.summaries else "dovetail's summaries are not right"


def _judge_call(pair: Pair, oracle: Oracle, call: Call) -> Verdict:
    answers = pair.ask(call, call)
    theirs, ours = answers
    if call.path == "/allocation_candidates" and theirs.status in (200, 500):
        return _judge_accepted(oracle, answers)
    same = alike(theirs, ours)
    return Verdict(None if same else "the answers differ", answers=answers)


def _judge_accepted(oracle: Oracle, answers: tuple[Answer, Answer]) -> Verdict:
    """A spoilt query that the reference finds nothing wrong with: is it accepted by both?"""
    theirs, ours = answers
    if ours.status == theirs.status == 200:
        return Verdict(answers=answers)
    numbers = frozenset[int]()
    if theirs.status == 500 and ours.status == 200 and defects.can_crash(oracle.world):
        numbers = frozenset({3})
    elif defects.overlooks_name(theirs, ours):
        numbers = frozenset({6})
    return Verdict(None if numbers else "accepted by one server only", numbers, answers)
