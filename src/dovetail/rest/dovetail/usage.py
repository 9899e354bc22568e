"""GET /dovetail/v1/usage: how full the fleet is, or one tree of it."""

from __future__ import annotations

import msgspec

from dovetail.ledger import totals
from dovetail.rest.dovetail.parameters import only
from dovetail.rest.server.http import Call, Reply


async def by_class(call: Call) -> Reply:
    only(call.query, "tree")
    tree = call.query.get("tree")
    found = await call.read(lambda tx: totals.by_class(tx, tree))
    return Reply(200, msgspec.json.encode({"classes": found}))
