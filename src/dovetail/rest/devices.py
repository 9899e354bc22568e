"""GET /dovetail/v1/devices: what the nodes have published, and how much of it is held."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.ledger import devices
from dovetail.ledger.devices import Unit
from dovetail.rest import parameters
from dovetail.rest.http import Call, Reply


async def listing(call: Call) -> Reply:
    parameters.only(call.query, "node")
    node = call.query.get("node")
    found = await call.read(lambda tx: devices.units_of(tx, node))
    return call.json({"devices": [as_json(unit) for unit in found.values()]})


def as_json(unit: Unit) -> dict[str, Any]:
    return {**msgspec.structs.asdict(unit.device), "used": unit.used}
