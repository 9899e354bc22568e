"""POST /dovetail/v1/whatif: where would this fit, if the fleet were another?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated

import msgspec
import orjson
from msgspec import Meta

from dovetail.aio.pace import spare_collector
from dovetail.core.errors import BadFleet
from dovetail.core.explanation import document
from dovetail.core.fleet import FleetPlan, FleetReader
from dovetail.core.request import Request
from dovetail.core.tables import Tables
from dovetail.engine import Search, Snapshot
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.explain import Diagnosis, Names, how_many
from dovetail.ledger import Transaction, claims, provider_names, resource_classes
from dovetail.ledger.database import loading
from dovetail.rest.dovetail.explain import LedgerRecords, names_in, refuse_strangers
from dovetail.rest.query.candidate_json import candidates_json, cut_short
from dovetail.rest.query.parse import classes_for, newest_request, query_of, shows_scores
from dovetail.rest.query.query_text import query_text
from dovetail.rest.query.summary_json import SummaryWriter
from dovetail.rest.query.versions import NEWEST
from dovetail.rest.server.errors import bad_request, conflict
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import gathered
from dovetail.service import hypothetical
from dovetail.service.asking import find_in, refuse_unknown_names, scores_of
from dovetail.service.explanations import diagnose, with_moves
from dovetail.service.time_budget import OutOfTime, TimeBudget
from dovetail.telemetry.phases import phase

TREES_AT_ONCE = 500

Keys = Annotated[list[str], Meta(max_length=100_000)]
Units = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Tree = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]


class GrownProvider(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """More of a resource class, as `additions` of an explanation say it."""

    provider: str
    """By name or UUID."""
    resource_class: str
    amount: Units


class WhatIfQuestion(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    query: str
    drain: Keys = []
    """Hosts, by name or UUID of any of their providers."""
    release: Keys = []
    """Consumers, by UUID."""
    add: list[Tree] = []
    """Trees, as in a fleet document."""
    grow: Annotated[list[GrownProvider], Meta(max_length=1000)] = []
    """Providers that have more than they do."""
    moves: bool = False
    """Whether to say whom to move."""


class WhatIfRequest(msgspec.Struct, frozen=True):
    """A question, with its query and its trees read."""

    question: WhatIfQuestion
    request: Request
    plan: FleetPlan
    scores: bool


class LedgerFacts(msgspec.Struct, frozen=True):
    """What the ledger says about the names in a question."""

    drained: list[str]
    held: list[claims.HeldUnits]
    grown: dict[tuple[int, str], int]
    """More, by id of the provider and class."""
    grown_trees: Tables
    """Theirs, as they are."""


class WhatIfOutcome(msgspec.Struct, frozen=True):
    hosts_before: int
    diagnosis: Diagnosis
    search: Search
    found: Block


async def ask(call: Call) -> Reply:
    with phase("parse"):
        # Many trees take seconds to read, and the event loop is everybody's.
        question = await asyncio.to_thread(question_in, call.body)
        if question.moves:
            refuse_strangers(call)
        limits = call.backend.limits
        query = query_of(question.query, limits)
        classes = await classes_for(call.backend.keeper, query)
        request = newest_request(query, classes, limits)
        plan = await plan_of(question.add)
        asked = WhatIfRequest(question, request, plan, shows_scores(query))
    facts = await call.read(lambda tx: facts_of(tx, asked))
    try:
        outcome = await outcome_of(call, asked, facts)
    except OutOfTime as error:
        raise bad_request("This takes too long; narrow the request.") from error
    added = {provider.uuid: provider.name for provider in asked.plan.providers}
    names = {**await names_in(call, outcome.diagnosis), **added}
    with phase("encode"):
        pieces = await gathered(texts_of(outcome, names, scores=asked.scores))
    return Reply.in_pieces(pieces, headers=cut_short(outcome.search))


async def outcome_of(call: Call, asked: WhatIfRequest, facts: LedgerFacts) -> WhatIfOutcome:
    backend = call.backend
    keeper, request, seconds = backend.keeper, asked.request, backend.limits.search_seconds
    snapshot = await keeper.fresh()
    with phase("suppose"), keeper.held(snapshot):
        twin = snapshot.copy()
        await asyncio.to_thread(change, twin, facts, asked.plan)
        refuse_unknown_names(twin, request)
        before = await TimeBudget(seconds).run(how_many(snapshot, request))
    diagnosis = await diagnose(twin, request, seconds)
    if asked.question.moves:
        records = LedgerRecords(call, asked.question.release)
        diagnosis = await with_moves(diagnosis, twin, request, records, seconds)
    search, found = await find_in(twin, request, seconds, typical=keeper.typical_requests.typical)
    return WhatIfOutcome(before, diagnosis, search, found)


def texts_of(outcome: WhatIfOutcome, names: Names, *, scores: bool) -> Iterator[bytes | memoryview]:
    explanation = outcome.diagnosis.explanation(names, query_text)
    answer = {
        "before": {"hosts": outcome.hosts_before},
        "after": {"hosts": explanation.fitting},
        "explanation": document(explanation),
    }
    shown = scores_of(outcome.search) if scores else ()
    # A writer of its own: what it remembers of trees is true of this fleet only.
    candidates = candidates_json(outcome.search, outcome.found, NEWEST, SummaryWriter(), shown)
    yield orjson.dumps(answer)[:-1] + b"," + bytes(next(candidates))[1:]
    yield from candidates


def question_in(body: bytes) -> WhatIfQuestion:
    try:
        return msgspec.json.decode(body, type=WhatIfQuestion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the question is not as it should be: {error}") from error


async def plan_of(trees: list[Tree]) -> FleetPlan:
    """Read in a thread, some trees at a time: many take seconds."""
    reader = FleetReader()

    def feed(some: list[Tree]) -> None:
        for tree in some:
            # In JSON a line feed is a blank like any other; in a fleet document it ends a tree.
            reader.feed(bytes(tree).replace(b"\n", b" ") + b"\n")

    if len(trees) > TREES_AT_ONCE:
        spare_collector()
    try:
        for start in range(0, len(trees), TREES_AT_ONCE):
            await asyncio.to_thread(feed, trees[start : start + TREES_AT_ONCE])
        return reader.finish()
    except BadFleet as error:
        raise bad_request(f"`add`: {error}") from error


def facts_of(tx: Transaction, asked: WhatIfRequest) -> LedgerFacts:
    drained = [provider_names.get(tx, key).uuid for key in asked.question.drain]
    new = [key for provider in asked.plan.providers for key in (provider.name, provider.uuid)]
    for taken in provider_names.find(tx, new):
        raise conflict(f"`add`: {taken} is in the fleet already")
    grown: dict[tuple[int, str], int] = {}
    roots: set[int] = set()
    for each in asked.question.grow:
        provider = provider_names.get(tx, each.provider)
        resource_classes.get_id(tx, each.resource_class)
        at = (provider.id, each.resource_class)
        grown[at] = grown.get(at, 0) + each.amount
        roots.add(provider.root_id)
    held = claims.of_consumers(tx, asked.question.release)
    return LedgerFacts(drained, held, grown, loading.trees(tx, sorted(roots)))


def change(snapshot: Snapshot, facts: LedgerFacts, plan: FleetPlan) -> None:
    if facts.grown:
        # First: trees that are taken in again have all their claims.
        hypothetical.with_more(snapshot, facts.grown_trees, facts.grown)
    hypothetical.without_claims(snapshot, facts.held)
    hypothetical.without_hosts(snapshot, facts.drained)
    if plan.providers:
        hypothetical.with_trees(snapshot, plan)
