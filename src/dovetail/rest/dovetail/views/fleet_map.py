"""GET /dovetail/v1/map: every host and its units in columns; /map/events: what changes of it.

One encoding serves all who ask as long as nothing changes, and one compression of it all who can
read that; what belongs to the layout is encoded once per layout. Columns are encoded one by one,
and others are served in between.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from dovetail.aio.pace import Pace
from dovetail.core.columns import Amounts
from dovetail.rest.dovetail import parameters
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.headers import accepts_gzip, has_seen
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import written_json
from dovetail.service.fleet_map.following import FleetChange, Follower, TooManyFollowers
from dovetail.service.fleet_map.layout import KINDS, FleetLayout
from dovetail.service.fleet_map.maps import FleetMap
from dovetail.service.fleet_map.usage import all_in_use, fragmentation, in_use_of, used_by_host

EVENTS = "text/event-stream"
TEXTS_AT_ONCE = 20_000
"""Encoded in some milliseconds."""
PACKED = "-gzip"
"""Ends the tag of the compressed map."""
PACKING_LEVEL, GZIP_FORMAT = 5, 16 + zlib.MAX_WBITS
"""As zlib numbers them; more than that takes twice the time for little."""
HEARTBEAT = b": still here\n\n"


async def show(call: Call) -> Reply:
    """The map."""
    parameters.only(call.query)
    found = await call.backend.fleet.maps.now()
    is_packed = accepts_gzip(call.request.headers)
    # A tag stands for bytes: those of the compressed map are others.
    tag = f'"{found.version}{PACKED}"' if is_packed else f'"{found.version}"'
    headers = {"etag": tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if has_seen(call.request.headers, tag):
        return Reply(304, headers=headers, content_type=None)
    if is_packed:
        headers["content-encoding"] = "gzip"
    task = packing(found) if is_packed else encoding(found)
    # Whoever is gone before it is done does not end it for the others.
    return Reply.in_pieces(await asyncio.shield(task), headers=headers)


async def events(call: Call) -> Reply:
    """What changes of the map, as server-sent events."""
    parameters.only(call.query)
    fleet = call.backend.fleet
    try:
        # Before the first state is looked at: a change of it right after would be told to nobody.
        follower = fleet.join(call.identity.user)
    except TooManyFollowers as error:
        status = 429 if error.is_user else 503
        raise HttpError(status, str(error), headers={"retry-after": "5"}) from error
    try:
        first = await fleet.maps.now()
    except BaseException:
        follower.leave()
        raise
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Reply(
        200, headers=headers, content_type=EVENTS, parts=told(follower, first, call.admit_again)
    )


async def told(
    follower: Follower, first: FleetMap, admit_again: Callable[[], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Events until the follower does not keep up, or may not follow any more."""
    hello = {"version": first.version, "layout": first.layout.digest}
    yield event("hello", orjson.dumps(hello))
    async for change in follower.changes():
        if change is not None:
            yield change.once("event", partial(of_change, change))
        elif await is_refused(admit_again):
            return
        else:
            yield HEARTBEAT


async def is_refused(admit_again: Callable[[], Awaitable[None]]) -> bool:
    """Whether a caller would not be let in any more. One who asks too much of other things stays:
    streams are bounded by themselves."""
    try:
        await admit_again()
    except HttpError as error:
        return error.status != 429
    return False


def event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


# -- encoding ------------------------------------------------------------------------------------


def encoding(found: FleetMap) -> asyncio.Future[list[bytes]]:
    return found.once("json", lambda: asyncio.ensure_future(encoded(found)))


def packing(found: FleetMap) -> asyncio.Future[list[bytes]]:
    return found.once("gzip", lambda: asyncio.ensure_future(packed(found)))


async def packed(found: FleetMap) -> list[bytes]:
    """The same, compressed: in a thread, for of a large fleet that takes longer than anybody may
    hold the event loop, and zlib does not need the interpreter meanwhile."""
    return await asyncio.to_thread(compressed, await asyncio.shield(encoding(found)))


def compressed(pieces: list[bytes]) -> list[bytes]:
    packer = zlib.compressobj(PACKING_LEVEL, wbits=GZIP_FORMAT)
    return [*filter(None, map(packer.compress, pieces)), packer.flush()]


async def encoded(found: FleetMap) -> list[bytes]:
    layout = found.layout
    task = found.once_per_layout("json", lambda: asyncio.ensure_future(columns_of_layout(layout)))
    static = await asyncio.shield(task)
    in_use = all_in_use(layout, found.usage)
    used = used_by_host(in_use)
    return await written_json(
        {
            "version": found.version,
            "layout": layout.digest,
            "hosts": static["hosts"],
            "groups": static["groups"],
            "classes": layout.classes,
            "capacity": static["capacity"],
            "used": by_class(layout, used),
            "lanes": {**static["lanes"], "used": column(found.usage.of_lanes)},
            "kinds": KINDS,
            "fragmentation": column(fragmentation(in_use)),
            "totals": totals(layout, used),
        }
    )


async def columns_of_layout(layout: FleetLayout) -> dict[str, Any]:
    """Column by column: others are served in between."""
    lanes, pace = layout.lanes, Pace()

    async def numbers(values: NDArray[Any]) -> msgspec.Raw:
        await pace.give_way()
        return column(values)

    async def texts(values: list[str]) -> msgspec.Raw:
        parts: list[bytes] = []
        for first in range(0, len(values), TEXTS_AT_ONCE):
            parts.append(msgspec.json.encode(values[first : first + TEXTS_AT_ONCE])[1:-1])
            await pace.give_way()
        return msgspec.Raw(b"[%s]" % b",".join(parts))

    groups = layout.groups.items()
    return {
        "hosts": {
            "uuid": await texts(layout.uuids),
            "name": await texts(layout.names),
            "state": await numbers(layout.state),
            "group": {name: await numbers(each.of_host) for name, each in groups},
        },
        "groups": {name: await texts(each.names) for name, each in groups},
        "capacity": by_class(layout, layout.capacity),
        "lanes": {
            "host": await numbers(lanes.host),
            "kind": await numbers(lanes.kind),
            "name": await texts(lanes.names),
            "class": await numbers(lanes.class_),
            "capacity": await numbers(lanes.capacity),
        },
    }


def by_class(layout: FleetLayout, columns: list[Amounts]) -> dict[str, msgspec.Raw]:
    return {name: column(values) for name, values in zip(layout.classes, columns, strict=True)}


def totals(layout: FleetLayout, used: list[Amounts]) -> dict[str, Any]:
    amounts = zip(layout.classes, layout.capacity, used, strict=True)
    return {
        "hosts": len(layout.names),
        "classes": {
            name: {"capacity": int(capacity.sum()), "used": int(taken.sum())}
            for name, capacity, taken in amounts
        },
    }


def of_change(change: FleetChange) -> bytes:
    now = change.now
    if change.trail.is_layout:
        reload = {"version": now.version, "layout": now.layout.digest}
        return event("reload", orjson.dumps(reload))
    lanes = change.trail.lanes
    hosts = np.unique(now.layout.lanes.host.take(lanes))
    in_use = in_use_of(now.layout, now.usage, hosts)
    classes = zip(now.layout.classes, used_by_host(in_use), strict=True)
    document = {
        "version": now.version,
        "from": change.trail.versions,
        "hosts": hosts,
        "used": dict(classes),
        "fragmentation": fragmentation(in_use),
        "lanes": {"at": lanes, "used": now.usage.of_lanes.take(lanes)},
    }
    return event("change", orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY))


def column(values: NDArray[Any]) -> msgspec.Raw:
    kept = np.ascontiguousarray(values)
    return msgspec.Raw(orjson.dumps(kept, option=orjson.OPT_SERIALIZE_NUMPY))
