"""/allocation_candidates: where does this fit?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block
from dovetail.rest.placement import schemas
from dovetail.rest.query.candidate_json import CandidateWriter, SummaryWriter
from dovetail.rest.query.parse import Classes, names_class, request_of, shows_scores
from dovetail.rest.server.backend import Backend
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Call, Query, Reply, Version
from dovetail.service import asking
from dovetail.service.asking import TooBroad
from dovetail.service.decisions import answer_of
from dovetail.telemetry.phases import phase

REQUESTS, SUMMARIES, END = b'{"allocation_requests":[', b'],"provider_summaries":{', b"}}"
NOTHING = REQUESTS + SUMMARIES + END
WRITER = SummaryWriter()


async def listing(call: Call) -> Reply:
    backend = call.backend
    classes = await classes_for(backend, call.query)
    with phase("parse"):
        schemas.LIST_CANDIDATES.at(call.version).query(call.query)
        request = request_of(call, classes)
    try:
        search, found = await asking.find(backend.keeper, request, backend.limits.search_seconds)
    except TooBroad as error:
        raise bad_request(str(error)) from error
    asked = call.request.scope["query_string"].decode("ascii")
    scores = asking.scores_of(search)
    backend.recent_answers.remember(answer_of(asked, search, found, scores))
    with phase("encode"):
        shown = scores if shows_scores(call.query) else ()
        body = written(search, found, call.version, WRITER, shown)
    return Reply(200, body, call.cache_headers())


async def classes_for(backend: Backend, query: Query) -> Classes:
    """The classes that are defined now, if the query names any."""
    if not names_class(query):
        return {}
    await backend.keeper.fresh()
    return backend.keeper.definitions


def written(
    search: Search,
    found: Block,
    version: Version,
    writer: SummaryWriter,
    scores: Sequence[Mapping[str, int]] = (),
) -> bytes:
    if not len(found):
        return NOTHING
    requests = CandidateWriter(search, version, scores).requests(found)
    summaries = writer.summaries(search.snapshot, search.slots, found, version)
    return b"".join((REQUESTS, requests, SUMMARIES, *summaries, END))
