"""GET /: which versions are spoken here."""

from __future__ import annotations

from dovetail.rest.query.schema import EXTENSIONS, GROUP_EXTENSIONS
from dovetail.rest.query.versions import NEWEST, OLDEST, shown
from dovetail.rest.server.http import Call, Reply

DOCUMENT = {
    "versions": [
        {
            "id": f"v{shown(OLDEST)}",
            "max_version": shown(NEWEST),
            "min_version": shown(OLDEST),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
            # Accepted by GET /allocation_candidates from 1.36 on, beside what Placement knows.
            "extensions": [*EXTENSIONS, *GROUP_EXTENSIONS, "same_subtree=!"],
        }
    ]
}


async def home(call: Call) -> Reply:
    return call.json(DOCUMENT)
