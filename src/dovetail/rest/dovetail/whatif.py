"""POST /dovetail/v1/whatif: where would this fit, if the fleet were another?"""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
import orjson
from msgspec import Meta

from dovetail.core.errors import BadFleet
from dovetail.core.explanation import document
from dovetail.core.fleet import FleetPlan, FleetReader
from dovetail.core.request import Request
from dovetail.engine import Search, Snapshot
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.explain import Diagnosis, Names, how_many
from dovetail.ledger import Transaction, claims, provider_names
from dovetail.rest.dovetail.explain import names_in
from dovetail.rest.query.candidate_json import SummaryWriter, candidates_json
from dovetail.rest.query.parse import Classes, classes_for, newest_request, query_of, shows_scores
from dovetail.rest.query.query_text import query_text
from dovetail.rest.query.versions import NEWEST
from dovetail.rest.server.backend import Backend
from dovetail.rest.server.errors import bad_request, conflict
from dovetail.rest.server.http import Call, Query, Reply
from dovetail.service import hypothetical
from dovetail.service.asking import find_in, refuse_unknown_names, scores_of
from dovetail.service.explanations import diagnose
from dovetail.service.time_budget import OutOfTime, Pace
from dovetail.telemetry.phases import phase

Keys = Annotated[list[str], Meta(max_length=100_000)]
Tree = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]


class Question(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    query: str
    drain: Keys = []
    """Hosts, by name or UUID of any of their providers."""
    release: Keys = []
    """Consumers, by UUID."""
    add: list[Tree] = []
    """Trees, as in a fleet document."""


class Understood(msgspec.Struct, frozen=True):
    """A question, understood."""

    question: Question
    request: Request
    plan: FleetPlan
    scores: bool


class Known(msgspec.Struct, frozen=True):
    """What the ledger says about the names in a question."""

    drained: list[str]
    held: list[claims.HeldUnits]


class Outcome(msgspec.Struct, frozen=True):
    hosts_before: int
    diagnosis: Diagnosis
    search: Search
    found: Block


async def ask(call: Call) -> Reply:
    with phase("parse"):
        # Many trees take seconds to read, and the event loop is everybody's.
        question = await asyncio.to_thread(decoded, call.body)
        query = query_of(question.query)
        classes = await classes_for(call.backend.keeper, query)
        asked = await asyncio.to_thread(understood, question, query, classes)
    known = await call.read(lambda tx: looked_up(tx, asked))
    try:
        outcome = await worked_out(call.backend, asked, known)
    except OutOfTime as error:
        raise bad_request("This takes too long; narrow the request.") from error
    added = {provider.uuid: provider.name for provider in asked.plan.providers}
    names = {**await names_in(call, outcome.diagnosis), **added}
    with phase("encode"):
        return Reply(200, as_bytes(outcome, names, scores=asked.scores))


async def worked_out(backend: Backend, asked: Understood, known: Known) -> Outcome:
    keeper, request, seconds = backend.keeper, asked.request, backend.limits.search_seconds
    snapshot = await keeper.fresh()
    with phase("suppose"), keeper.held(snapshot):
        twin = snapshot.copy()
        await asyncio.to_thread(change, twin, known, asked.plan)
        refuse_unknown_names(twin, request)
        before = await Pace(seconds).finished(how_many(snapshot, request))
    diagnosis = await diagnose(twin, request, seconds)
    search, found = await find_in(twin, request, seconds, typical=keeper.demand.typical)
    return Outcome(before, diagnosis, search, found)


def as_bytes(outcome: Outcome, names: Names, *, scores: bool) -> bytes:
    explanation = outcome.diagnosis.explanation(names, query_text)
    answer = {
        "before": {"hosts": outcome.hosts_before},
        "after": {"hosts": explanation.fitting},
        "explanation": document(explanation),
    }
    shown = scores_of(outcome.search) if scores else ()
    # A writer of its own: what it remembers of trees is true of this fleet only.
    candidates = candidates_json(outcome.search, outcome.found, NEWEST, SummaryWriter(), shown)
    return orjson.dumps(answer)[:-1] + b"," + candidates[1:]


def understood(question: Question, query: Query, classes: Classes) -> Understood:
    request = newest_request(query, classes)
    return Understood(question, request, planned(question.add), shows_scores(query))


def decoded(body: bytes) -> Question:
    try:
        return msgspec.json.decode(body, type=Question)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the question is not as it should be: {error}") from error


def planned(trees: list[Tree]) -> FleetPlan:
    reader = FleetReader()
    try:
        for tree in trees:
            # In JSON a line feed is a blank like any other; in a fleet document it ends a tree.
            reader.feed(bytes(tree).replace(b"\n", b" ") + b"\n")
        return reader.finish()
    except BadFleet as error:
        raise bad_request(f"`add`: {error}") from error


def looked_up(tx: Transaction, asked: Understood) -> Known:
    drained = [provider_names.get(tx, key).uuid for key in asked.question.drain]
    new = [key for provider in asked.plan.providers for key in (provider.name, provider.uuid)]
    for taken in provider_names.find(tx, new):
        raise conflict(f"`add`: {taken} is in the fleet already")
    return Known(drained, claims.of_consumers(tx, asked.question.release))


def change(snapshot: Snapshot, known: Known, plan: FleetPlan) -> None:
    hypothetical.without_claims(snapshot, known.held)
    hypothetical.without_hosts(snapshot, known.drained)
    if plan.providers:
        hypothetical.with_trees(snapshot, plan)
