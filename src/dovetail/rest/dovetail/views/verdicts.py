"""GET /dovetail/v1/explain/hosts: a verdict for every host of the map on one request."""

from __future__ import annotations

import orjson

from dovetail.rest.query.parse import classes_for, newest_request
from dovetail.rest.server.http import Call, Reply
from dovetail.service.asking import refuse_unknown_names
from dovetail.service.host_verdicts import verdicts
from dovetail.telemetry.phases import phase


async def show(call: Call) -> Reply:
    """In the order of the map: 0 fits, 1 not now, 2 never, 3 there was no time to tell."""
    keeper = call.backend.keeper
    classes = await classes_for(keeper, call.query)
    with phase("parse"):
        request = newest_request(call.query, classes, call.backend.limits)
    fleet, snapshot = await call.backend.fleet.maps.with_snapshot()
    refuse_unknown_names(snapshot, request)
    with keeper.held(snapshot):
        found, complete = await verdicts(snapshot, request, call.backend.limits.search_seconds)
    document = {
        "version": fleet.version,
        "layout": fleet.layout.digest,
        "verdict": found.take(fleet.layout.trees),
        "complete": complete,
    }
    return Reply(200, orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY))
