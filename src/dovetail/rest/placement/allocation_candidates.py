"""/allocation_candidates: where does this fit?"""

from __future__ import annotations

from dovetail.rest.query.candidate_json import candidates_json, cut_short
from dovetail.rest.query.parse import classes_for, request_kept, shows_scores
from dovetail.rest.query.summary_json import SummaryWriter
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import gathered
from dovetail.service import asking
from dovetail.service.decisions import answer_of
from dovetail.telemetry.phases import phase

WRITER = SummaryWriter()


async def listing(call: Call) -> Reply:
    backend = call.backend
    classes = await classes_for(backend.keeper, call.query)
    asked = call.request.scope["query_string"].decode("ascii")
    with phase("parse"):
        request = request_kept(call, asked, classes, backend.limits)
    limits = backend.limits
    order = backend.dealer.deal(request.limit) if limits.randomize_allocation_candidates else None
    search, found = await asking.find(backend.keeper, request, limits.search_seconds, order=order)
    scores = asking.scores_of(search)
    backend.recent_answers.remember(answer_of(asked, search, found, scores))
    with phase("encode"), backend.keeper.held(search.snapshot):
        shown = scores if shows_scores(call.query) else ()
        pieces = await gathered(candidates_json(search, found, call.version, WRITER, shown))
    return Reply.in_pieces(pieces, headers=call.cache_headers() | cut_short(search))
