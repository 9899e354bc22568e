"""GET /dovetail/v1/intents: deployment intent groups of all projects, or of one."""

from __future__ import annotations

import msgspec

from dovetail.ledger.views import groups
from dovetail.rest.dovetail import parameters
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


async def listing(call: Call) -> Reply:
    """Readers of a project see those of theirs, by `project_id`."""
    parameters.only(call.query, "project_id")
    project = call.query.get("project_id")
    found = await call.read(lambda tx: groups.listing(tx, project))
    return await call.long_json({"groups": LongList(map(msgspec.structs.asdict, found))})
