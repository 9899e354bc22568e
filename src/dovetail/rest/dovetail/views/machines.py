"""GET /dovetail/v1/machines: stock per type, who holds units, who waits for some and why."""

from __future__ import annotations

from typing import Any

from dovetail.ledger.machines.queue import QueuedGuest
from dovetail.ledger.views import machines
from dovetail.ledger.views.machines import LentUnit, MachineGroup, StockLine
from dovetail.rest.dovetail import parameters
from dovetail.rest.dovetail.views.times import shown_time
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


async def show(call: Call) -> Reply:
    """What only the operator knows is null where it told nothing yet."""
    parameters.only(call.query)
    found = await call.read(machines.listing)
    return await call.long_json({"groups": LongList(as_json(each) for each in found)})


def as_json(each: MachineGroup) -> dict[str, Any]:
    told = each.told
    return {
        "cluster": each.cluster,
        "name": each.name,
        "types": [line_json(one) for one in each.types],
        "holders": [holder_json(one) for one in each.holders],
        "queue": None
        if told is None
        else [guest_json(at, one) for at, one in enumerate(told.queue.guests, 1)],
        "told_at": None if told is None else shown_time(told.at),
    }


def line_json(one: StockLine) -> dict[str, Any]:
    return {
        "type": one.type,
        "max": one.max,
        "reserved": one.reserved,
        "used": one.used,
        "waiting": one.waiting,
    }


def holder_json(one: LentUnit) -> dict[str, Any]:
    unit = one.unit
    return {
        "consumer": unit.consumer,
        "type": unit.type,
        "node": unit.node,
        "stock": unit.is_stock,
        "project": unit.namespace,
        "pod": one.pod,
        "user": unit.user,
        "from": shown_time(unit.since),
        "until": shown_time(one.until),
    }


def guest_json(position: int, one: QueuedGuest) -> dict[str, Any]:
    return {
        "position": position,
        "consumer": one.uid,
        "type": one.type,
        "project": one.namespace,
        "pod": one.pod,
        "since": one.since,
        "reason": one.reason,
        "message": one.message,
    }
