"""GET /dovetail/v1/fleet: the ledger as a fleet document."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO

from dovetail.ledger.bulk import dump as dumping
from dovetail.rest.dovetail.fleet import MEDIA
from dovetail.rest.dovetail.parameters import only
from dovetail.rest.server.http import Call, Reply

IN_MEMORY = 16 * 2**20
PIECE = 256 * 2**10


async def dump(call: Call) -> Reply:
    """Written to a file first: a slow reader then holds no view of the database open, and what
    goes wrong is told by a status."""
    only(call.query, "tree")
    trees = call.query.all("tree")
    spool = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    try:
        await call.read(lambda tx: dumping.dump(tx, spool.write, trees))
    except BaseException:
        spool.close()
        raise
    headers = {"content-length": str(spool.tell())}
    return Reply(200, headers=headers, content_type=MEDIA[0], parts=pieces(spool))


async def pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    with spool:
        spool.seek(0)
        while piece := await asyncio.to_thread(spool.read, PIECE):
            yield piece
