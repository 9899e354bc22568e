"""GET /dovetail/v1/hosts/{host}: one tree, what its units are, and who holds how much of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dovetail.ledger import Transaction, decisions, provider_names
from dovetail.ledger.database.protocol import Row
from dovetail.ledger.views import pods, trees
from dovetail.rest.dovetail import parameters
from dovetail.rest.dovetail.decisions import as_json as decision_json
from dovetail.rest.dovetail.decisions import providers_in
from dovetail.rest.dovetail.views.times import shown_time
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList

LOOKED_THROUGH = 2000
"""Newest decisions, of which those about the host are shown."""
SHOWN_DECISIONS = 20


async def show(call: Call) -> Reply:
    """Any provider's name or UUID leads to its tree."""
    parameters.only(call.query)
    key = call.params["host"]
    # Of a large tree that takes a while, so it is not done on everybody's event loop.
    found, seen, decided = await call.read(lambda tx: whole(tx, key))
    root = found[0]
    return await call.long_json(
        {
            "uuid": root["uuid"],
            "name": root["name"],
            "providers": LongList(found),
            "pods": LongList(seen),
            "decisions": LongList(decided),
        }
    )


def whole(tx: Transaction, key: str) -> tuple[list[dict[str, Any]], ...]:
    """Its providers, pods and decisions."""
    tree = trees.get(tx, key)
    types = {one.consumer: one.type for each in tree for one in each.holders}
    named = pods.names_of(tx, types)
    rows = about(tx, {each.uuid for each in tree})
    names = provider_names.find(tx, sorted(providers_in(rows)))
    return (
        [provider_json(each, named) for each in tree],
        [pod_json(each) for each in pods.on_node(tx, tree[0].id)],
        [decision_json(row, names) for row in rows],
    )


def about(tx: Transaction, uuids: set[str]) -> list[Row]:
    """The newest decisions that chose these providers."""
    found: list[Row] = []
    for row in decisions.listing(tx, limit=LOOKED_THROUGH):
        if not uuids.isdisjoint(orjson.loads(row[3])["chosen"]["allocations"]):
            found.append(row)
            if len(found) == SHOWN_DECISIONS:
                break
    return found


def provider_json(each: trees.TreeProvider, named: Mapping[str, str]) -> dict[str, Any]:
    return {
        "uuid": each.uuid,
        "name": each.name,
        "generation": each.generation,
        "parent": each.parent,
        "depth": each.depth,
        "traits": each.traits,
        "aggregates": each.aggregates,
        "attributes": each.attributes,
        "inventories": {name: inventory_json(one) for name, one in each.inventories.items()},
        "holders": [holder_json(one, named) for one in each.holders],
    }


def inventory_json(one: trees.InventoryUse) -> dict[str, Any]:
    has = one.inventory
    return {
        "total": has.total,
        "reserved": has.reserved,
        "min_unit": has.min_unit,
        "max_unit": has.max_unit,
        "step_size": has.step_size,
        "allocation_ratio": has.allocation_ratio,
        "capacity": has.capacity,
        "used": one.used,
    }


def holder_json(one: trees.ProviderHolder, named: Mapping[str, str]) -> dict[str, Any]:
    return {
        "consumer": one.consumer,
        "pod": named.get(one.consumer),
        "type": one.type,
        "project": one.project,
        "user": one.user,
        "since": shown_time(one.since),
        "resources": one.resources,
    }


def pod_json(each: pods.PodOnHost) -> dict[str, Any]:
    return {
        "uid": each.uid,
        "namespace": each.namespace,
        "name": each.name,
        "app": each.app or None,
        "resources": each.resources,
        "devices": each.devices,
    }
