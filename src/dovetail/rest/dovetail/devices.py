"""GET /dovetail/v1/devices: what the nodes have published, and how much of it is held."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.ledger import Transaction, devices
from dovetail.ledger.devices import Unit
from dovetail.rest.dovetail import parameters
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


async def listing(call: Call) -> Reply:
    parameters.only(call.query, "node")
    node = call.query.get("node")
    # Of a large fleet that takes a while, so it is not done on everybody's event loop.
    found = await call.read(lambda tx: shown(tx, node))
    return await call.long_json({"devices": LongList(found)})


def shown(tx: Transaction, node: str | None) -> list[dict[str, Any]]:
    """In an order that does not depend on the database."""
    units = devices.units_of(tx, node)
    return [as_json(units[name]) for name in sorted(units)]


def as_json(unit: Unit) -> dict[str, Any]:
    told = msgspec.structs.asdict(unit.device)
    # The ledger does not keep who brings a device into containers.
    del told["origin"]
    return {**told, "used": unit.used}
