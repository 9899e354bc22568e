"""Liveness and readiness probes: /livez for what restarts servers, /readyz for load balancers."""

from __future__ import annotations

import asyncio

import structlog

from dovetail.aio.thread_results import result_of
from dovetail.ledger import LedgerBusy
from dovetail.rest.server.http import Call, Reply

log = structlog.get_logger("dovetail.rest")

PROBES = frozenset({"/livez", "/readyz"})
"""They tell nothing that anybody may not know: whoever probes may use any name."""
PATIENCE_SECONDS = 5
PLAIN = "text/plain; charset=UTF-8"


async def livez(_call: Call) -> Reply:
    return Reply(200, b"ok\n", content_type=PLAIN)


async def readyz(call: Call, patience_seconds: float = PATIENCE_SECONDS) -> Reply:
    """Ready when the snapshot could be brought up to date, and the ledger takes writes.

    After a load, taking in the fleet may take longer. The ledger has told all of it by then, and
    all replicas are at it at the same time: those who ask wait for it, and are answered.
    """
    keeper = call.backend.keeper
    try:
        try:
            async with asyncio.timeout(patience_seconds):
                await keeper.fresh()
        except TimeoutError:
            if not keeper.is_catching_up:
                raise
        async with asyncio.timeout(patience_seconds):
            await result_of(call.backend.ledger.check())
    except (LedgerBusy, TimeoutError) as error:
        # Everybody may ask; where the database is and why it is away, only the log tells.
        log.warning("not ready", error=str(error) or "the database does not answer")
        return Reply(503, b"not ready: the ledger cannot be used now\n", content_type=PLAIN)
    return Reply(200, b"ok\n", content_type=PLAIN)
