"""GET /dovetail/v1/classes/availability: how many units of each class are left, on how many nodes,
and what classes have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dovetail.ledger.device_classes import Definition
from dovetail.ledger.devices import Unit
from dovetail.rest.dovetail import parameters
from dovetail.rest.dovetail.classes import everything
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList
from dovetail.service.class_overlaps import overlaps_of
from dovetail.service.device_classes import of_document, statuses


async def show(call: Call) -> Reply:
    parameters.only(call.query)
    found, units = await call.read(everything)
    # Counting all units of a large fleet takes a while.
    shown = await asyncio.to_thread(as_json, found, units)
    return await call.long_json({name: LongList(each) for name, each in shown.items()})


def as_json(found: Sequence[Definition], units: Sequence[Unit]) -> dict[str, list[Any]]:
    definitions = {each.name: of_document(each.name, each.document) for each in found}
    count = statuses(definitions, units)
    spreads, overlaps = overlaps_of(definitions, units)
    nodes = {each.name: each for each in spreads}
    return {
        "classes": [
            {
                "name": name,
                "allocatable": each.allocatable,
                "requested": each.requested,
                "available": each.available,
                "nodes": nodes[name].nodes if name in nodes else None,
                "nodes_available": nodes[name].nodes_available if name in nodes else None,
            }
            for name, each in count.items()
        ],
        "overlaps": [
            {"classes": each.classes, "units": each.units, "available": each.available}
            for each in overlaps
        ],
    }
