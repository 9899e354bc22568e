"""/allocation_candidates: where does this fit?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dovetail.core.request import Request
from dovetail.engine import Search, Snapshot
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
    refuse_unknown_names(search.snapshot, request)
    asked = call.request.scope["query_string"].decode("ascii")
    scores = asking.scores_of(search)
    backend.recollection.remember(answer_of(asked, search, found, scores))
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


def refuse_unknown_names(snapshot: Snapshot, request: Request) -> None:
    """Names that nobody ever heard of are more likely misspelt than unavailable."""
    for group in request.groups:
        for name in group.resources:
            if name not in snapshot.class_ids:
                raise bad_request(
                    f"Invalid resource class in resources parameter: No such resource class {name}."
                )
    named = [
        *(names for group in request.groups for names in (*group.required, group.forbidden)),
        *request.root_required,
        request.root_forbidden,
    ]
    for names in named:
        refuse_unknown_traits(snapshot, names)


def refuse_unknown_traits(snapshot: Snapshot, names: Iterable[str]) -> None:
    unknown = sorted(name for name in names if name not in snapshot.trait_ids)
    if unknown:
        raise bad_request(f"No such trait(s): {', '.join(unknown)}.")
