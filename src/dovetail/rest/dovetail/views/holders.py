"""GET /dovetail/v1/consumers: who holds what, where and since when; /map/holders: by host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dovetail.ledger import Transaction
from dovetail.ledger.views import holders, pods
from dovetail.ledger.views.holders import HolderFilter, HoldingConsumer
from dovetail.rest.dovetail import parameters
from dovetail.rest.dovetail.decisions import number
from dovetail.rest.dovetail.views.times import shown_time
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList

MOST = 1000
USUAL = 50


async def listing(call: Call) -> Reply:
    """Newest first; `next` is what to ask for with `after` to go on."""
    parameters.only(call.query, "limit", "after", "project", "user", "type", "q")
    limit = number(call, "limit") or USUAL
    if limit > MOST:
        raise bad_request(f"limit: at most {MOST} consumers are listed at once")
    after, query = number(call, "after"), call.query
    wanted = HolderFilter(
        project=query.get("project"),
        user=query.get("user"),
        type=query.get("type"),
        text=query.get("q") or None,
    )
    # One more than shown tells whether there are more.
    found, named = await call.read(
        lambda tx: with_pods(tx, holders.listing(tx, wanted, limit=limit + 1, after=after))
    )
    shown = found[:limit]
    return await call.long_json(
        {
            "consumers": LongList(as_json(each, named) for each in shown),
            "next": shown[-1].id if len(found) > limit else None,
        }
    )


async def show(call: Call) -> Reply:
    parameters.only(call.query)
    uuid = call.params["consumer"]
    [found], named = await call.read(lambda tx: with_pods(tx, [holders.get(tx, uuid)]))
    return call.json(as_json(found, named))


def with_pods(
    tx: Transaction, found: list[HoldingConsumer]
) -> tuple[list[HoldingConsumer], dict[str, str]]:
    """And what the pods of those are called that are pods, as far as it is known."""
    return found, pods.names_of(tx, {each.uuid: each.type for each in found})


def as_json(each: HoldingConsumer, named: Mapping[str, str]) -> dict[str, Any]:
    return {
        "uuid": each.uuid,
        "pod": named.get(each.uuid),
        "type": each.type,
        "project": each.project,
        "user": each.user,
        "generation": each.generation,
        "since": shown_time(each.since),
        "holds": [
            {
                "provider": one.provider,
                "name": one.name,
                "host": one.host,
                "host_uuid": one.host_uuid,
                "resources": one.resources,
            }
            for one in each.holds
        ],
    }


async def on_map(call: Call) -> Reply:
    """In the order of the map: the project with the most consumers on each host (-1: none)."""
    parameters.only(call.query)
    fleet = await call.backend.fleet.maps.now()
    rows = await call.read(holders.consumers_by_project)
    projects = {project: at for at, project in enumerate(dict.fromkeys(row[1] for row in rows))}
    most: dict[int, tuple[int, int]] = {}
    several: dict[int, int] = {}
    for root, project, count in rows:
        several[root] = several.get(root, 0) + 1
        if count > most.get(root, (0, 0))[0]:
            most[root] = (count, projects[project])
    roots = fleet.layout.root_ids
    document = {
        "layout": fleet.layout.digest,
        "projects": list(projects),
        "project": [most.get(root, (0, -1))[1] for root in roots],
        "consumers": [most.get(root, (0, -1))[0] for root in roots],
        "others": [max(several.get(root, 0) - 1, 0) for root in roots],
    }
    return Reply(200, orjson.dumps(document))
