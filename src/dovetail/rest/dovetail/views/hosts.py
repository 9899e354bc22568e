"""GET /dovetail/v1/hosts/{host}: one tree, what its units are, and who holds how much of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import orjson

from dovetail.aio.pace import spare_collector
from dovetail.ledger import Transaction, decisions, provider_names
from dovetail.ledger.database.protocol import Row
from dovetail.ledger.views import pods, trees
from dovetail.rest.dovetail import parameters
from dovetail.rest.dovetail.decisions import as_json as decision_json
from dovetail.rest.dovetail.decisions import providers_in
from dovetail.rest.dovetail.views.times import shown_time
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList

AT_ONCE = 500
"""Decisions that are read and looked through in one go."""
SHOWN_DECISIONS = 20


async def show(call: Call) -> Reply:
    """Any provider's name or UUID leads to its tree."""
    parameters.only(call.query)
    key = call.params["host"]
    # Of a large tree that takes a while, so it is not done on everybody's event loop; the ledger's
    # threads do not know for which request they make so many objects.
    spare_collector()
    found = await call.read(lambda tx: whole(tx, key))
    root = found.tree[0]
    uuid, name = root.uuid, root.name
    shown = (provider_json(each, found.pod_names) for each in taken_from(found.tree))
    return await call.long_json(
        {
            "uuid": uuid,
            "name": name,
            "providers": LongList(shown),
            "pods": LongList(map(pod_json, found.pods)),
            "decisions": LongList(found.decisions),
        }
    )


class WholeHost(msgspec.Struct):
    """What one transaction reads of a host."""

    tree: list[trees.TreeProvider]
    pod_names: Mapping[str, str]
    """By consumer."""
    pods: Sequence[pods.PodOnHost]
    decisions: list[dict[str, Any]]


def taken_from(tree: list[trees.TreeProvider]) -> Iterator[trees.TreeProvider]:
    """One after the other, so that a large tree does not go away in one long step."""
    tree.reverse()
    while tree:
        yield tree.pop()


def whole(tx: Transaction, key: str) -> WholeHost:
    tree = trees.get(tx, key)
    types = {one.consumer: one.type for each in tree for one in each.holders}
    named = pods.names_of(tx, types)
    rows = about(tx, {each.uuid for each in tree})
    names = provider_names.find(tx, sorted(providers_in(rows)))
    told = [decision_json(row, names) for row in rows]
    return WholeHost(tree, named, pods.on_node(tx, tree[0].id), told)


def about(tx: Transaction, uuids: set[str]) -> list[Row]:
    """The newest decisions that chose these providers, of all that are kept."""
    chose = (
        row
        for row in newest_first(tx)
        if not uuids.isdisjoint(orjson.loads(row[3])["chosen"]["allocations"])
    )
    return [*islice(chose, SHOWN_DECISIONS)]


def newest_first(tx: Transaction) -> Iterator[Row]:
    before: int | None = None
    while rows := decisions.listing(tx, limit=AT_ONCE, before=before):
        yield from rows
        before = rows[-1][0]


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
