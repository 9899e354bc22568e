"""GET /dovetail/v1/openapi.json: made when it is first asked for, so that no start waits for it."""

from __future__ import annotations

from functools import cache

import orjson

from dovetail.rest.server.http import Call, Reply


async def show(_call: Call) -> Reply:
    return Reply(200, encoded())


@cache
def encoded() -> bytes:
    from dovetail.rest.dovetail.routes import OWN_ROUTES
    from dovetail.rest.openapi.document import document
    from dovetail.rest.placement.routes import ROUTES

    return orjson.dumps(document({**ROUTES, **OWN_ROUTES}))
