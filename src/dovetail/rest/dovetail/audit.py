"""/dovetail/v1/audit: is the ledger sound? GET looks, POST heals what can be healed."""

from __future__ import annotations

import msgspec

from dovetail.ledger.bulk import audit
from dovetail.rest.dovetail.parameters import only
from dovetail.rest.server.http import Call, Reply


async def show(call: Call) -> Reply:
    only(call.query)
    found = await call.read(audit.examine)
    return Reply(200, msgspec.json.encode(found))


async def heal(call: Call) -> Reply:
    only(call.query)
    healed, found = await call.write(audit.heal)
    return Reply(
        200,
        msgspec.json.encode({"checked": found.checked, "healed": healed, "faults": found.faults}),
    )
