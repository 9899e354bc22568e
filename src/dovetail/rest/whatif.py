"""POST /dovetail/v1/whatif: where would this fit, if the fleet were another?"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta

from dovetail.core.errors import BadFleet
from dovetail.core.fleet import FleetPlan, FleetReader
from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import how_many
from dovetail.engine.rank import Typical
from dovetail.ledger import Transaction, holdings, naming
from dovetail.rest.asking import query_of, request_in
from dovetail.rest.errors import HttpError, bad_request, conflict
from dovetail.rest.explain import as_json, names_in
from dovetail.rest.http import Call, Reply
from dovetail.rest.placement.allocation_candidates import refuse_unknown_names, written
from dovetail.rest.placement.candidate_json import SummaryWriter
from dovetail.rest.versions import NEWEST
from dovetail.service import hypothetical
from dovetail.service.candidates import TooBroad, find_in
from dovetail.service.explanations import TooLong, explain
from dovetail.service.pace import OutOfTime, Pace

Keys = Annotated[list[str], Meta(max_length=100_000)]


class Question(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    query: str
    drain: Keys = []
    """Hosts, by name or UUID of any of their providers."""
    release: Keys = []
    """Consumers, by UUID."""
    add: list[dict[str, Any]] = []
    """Trees, as in a fleet document."""


class Known(msgspec.Struct, frozen=True):
    """What the ledger says about the names in a question."""

    drained: list[str]
    held: list[holdings.Held]


async def ask(call: Call) -> Reply:
    question = decoded(call.body)
    request = request_in(query_of(question.query))
    plan = planned(question.add)
    known = await call.read(lambda tx: looked_up(tx, question, plan))
    keeper, seconds = call.backend.keeper, call.backend.limits.search_seconds
    snapshot = await keeper.fresh()
    twin = snapshot.copy()
    change(twin, known, plan)
    refuse_unknown_names(twin, request)
    try:
        with keeper.held(snapshot):
            before = await Pace(seconds).finished(how_many(snapshot, request))
        explained = await explain(twin, request, seconds)
        answer = await answered(twin, request, seconds, keeper.demand.typical)
    except (TooBroad, TooLong, OutOfTime) as error:
        raise HttpError(400, str(error) or "This takes too long; narrow the request.") from error
    added = {provider.uuid: provider.name for provider in plan.providers}
    names = {**await names_in(call, explained), **added}
    document = {
        "before": {"hosts": before},
        "after": {"hosts": explained.fitting},
        "explanation": as_json(explained, names),
    }
    return Reply(200, orjson.dumps(document)[:-1] + b"," + answer[1:])


def decoded(body: bytes) -> Question:
    try:
        return msgspec.json.decode(body, type=Question)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the question is not as it should be: {error}") from error


def planned(trees: list[dict[str, Any]]) -> FleetPlan:
    reader = FleetReader()
    try:
        for tree in trees:
            reader.feed(orjson.dumps(tree) + b"\n")
        return reader.finish()
    except BadFleet as error:
        raise bad_request(f"`add`: {error}") from error


def looked_up(tx: Transaction, question: Question, plan: FleetPlan) -> Known:
    drained = [naming.get(tx, key).uuid for key in question.drain]
    new = [key for provider in plan.providers for key in (provider.name, provider.uuid)]
    for taken in naming.find(tx, new):
        raise conflict(f"`add`: {taken} is in the fleet already")
    return Known(drained, holdings.of_consumers(tx, question.release))


def change(snapshot: Snapshot, known: Known, plan: FleetPlan) -> None:
    hypothetical.without_claims(snapshot, known.held)
    hypothetical.without_hosts(snapshot, known.drained)
    if plan.providers:
        hypothetical.with_trees(snapshot, plan)


async def answered(snapshot: Snapshot, request: Request, seconds: float, typical: Typical) -> bytes:
    search, found = await find_in(snapshot, request, seconds, typical=typical)
    # A writer of its own: what it remembers of trees is true of this fleet only.
    return written(search, found, NEWEST, SummaryWriter())
