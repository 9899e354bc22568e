"""GET /dovetail/v1/openapi.json: made when it is first asked for, so that no start waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache

import orjson

from dovetail.rest.openapi.operations import (
    ERROR,
    TEXT,
    Document,
    DoorDescription,
    Operation,
    an_object,
    ref,
)
from dovetail.rest.server.errors import PROBLEM
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.routing import Handler

PATH = "/dovetail/v1/openapi.json"
PLAIN = "text/plain"


def endpoint(compose: Callable[[], Document]) -> Handler:
    @cache
    def encoded() -> bytes:
        return orjson.dumps(compose())

    async def show(_call: Call) -> Reply:
        # Making it takes a while, the first time.
        return Reply(200, await asyncio.to_thread(encoded))

    return show


def describe() -> DoorDescription:
    """What the server itself answers, whatever doors there are."""
    return DoorDescription(
        about="the server",
        operations={
            ("GET", "/livez"): Operation(
                summary="Whether the process runs.", answers={200: TEXT}, answer_type=PLAIN
            ),
            ("GET", "/readyz"): Operation(
                summary="Whether the database answers and the snapshot is current.",
                answers={200: TEXT},
                answer_type=PLAIN,
                refusal_types={503: PLAIN},
            ),
            ("GET", "/metrics"): Operation(
                summary="Metrics for Prometheus.",
                answers={200: TEXT},
                answer_type=PLAIN,
                refusals=(401, 403, 404),
            ),
            ("GET", PATH): Operation(
                summary="This description.", answers={200: an_object({"openapi": TEXT})}
            ),
        },
        schemas={"Problem": an_object({**ERROR["properties"], "type": TEXT})},
        errors={PROBLEM: {"schema": ref("Problem")}},
    )
