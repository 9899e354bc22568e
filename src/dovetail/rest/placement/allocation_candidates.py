"""/allocation_candidates: where does this fit?"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.rest.errors import bad_request
from dovetail.rest.http import Call, Reply
from dovetail.rest.placement import schemas
from dovetail.rest.placement.candidate_json import CandidateWriter, SummaryWriter
from dovetail.rest.placement.candidate_query import request_of
from dovetail.service import candidates
from dovetail.service.candidates import TooBroad

REQUESTS, SUMMARIES, END = b'{"allocation_requests":[', b'],"provider_summaries":{', b"}}"
NOTHING = REQUESTS + SUMMARIES + END
WRITER = SummaryWriter()


async def listing(call: Call) -> Reply:
    schemas.LIST_CANDIDATES.at(call.version).query(call.query)
    request = request_of(call)
    backend = call.backend
    try:
        search, found = await candidates.find(
            backend.keeper, request, backend.limits.search_seconds
        )
    except TooBroad as error:
        raise bad_request(str(error)) from error
    refuse_unknown_names(search.snapshot, request)
    if not len(found):
        return Reply(200, NOTHING, call.cache_headers())
    requests = CandidateWriter(search, call.version).requests(found)
    summaries = WRITER.summaries(search.snapshot, search.slots, found, call.version)
    pieces = (REQUESTS, requests, SUMMARIES, *summaries, END)
    return Reply(200, b"".join(pieces), call.cache_headers())


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
