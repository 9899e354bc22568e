"""POST /dovetail/v1/fleet: a whole forest in one transaction."""

from __future__ import annotations

import asyncio

from dovetail.aio.pace import spare_collector
from dovetail.core.errors import BadFleet, NotFound
from dovetail.core.fleet import FleetReader
from dovetail.ledger.bulk import fleet as loading
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply

MEDIA = ("application/x-ndjson", "application/jsonl")


async def load(call: Call) -> Reply:
    """Read line by line as it arrives; write only when all of it is known to be good."""
    media = call.request.headers.get("content-type", "").partition(";")[0].strip()
    if media not in MEDIA:
        raise HttpError(415, f"a fleet is sent as {MEDIA[0]}, not as {media or 'nothing'}")
    reader, size = FleetReader(), 0
    spare_collector()
    try:
        async for chunk in call.request.stream():
            size += len(chunk)
            if size > call.backend.limits.fleet_bytes:
                raise HttpError(413, f"more than {call.backend.limits.fleet_bytes} bytes")
            # Reading takes as long as a fleet is large, and the event loop is everybody's.
            await asyncio.to_thread(reader.feed, chunk)
        plan = await asyncio.to_thread(reader.finish)
        counts = await call.write(lambda tx: loading.load(tx, plan))
    except BadFleet as error:
        raise HttpError(400, str(error), extra={"line": error.line}) from error
    except NotFound as error:
        raise HttpError(400, str(error)) from error
    return call.json(counts)
