"""GET /dovetail/v1/decisions: what was asked, chosen and passed over."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

from dovetail.ledger import Transaction, decisions, provider_names
from dovetail.ledger.database.protocol import Row
from dovetail.rest.dovetail import parameters
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList

MOST = 1000
USUAL = 20


async def listing(call: Call) -> Reply:
    parameters.only(call.query, "limit", "before", "consumer")
    limit = number(call, "limit") or USUAL
    if limit > MOST:
        raise bad_request(f"limit: at most {MOST} decisions are listed at once")
    before, consumer = number(call, "before"), call.query.get("consumer")

    def read(tx: Transaction) -> tuple[list[Row], dict[str, provider_names.NamedProvider]]:
        rows = decisions.listing(tx, limit=limit, before=before, consumer=consumer)
        return rows, provider_names.find(tx, sorted(providers_in(rows)))

    rows, names = await call.read(read)
    shown = LongList(as_json(row, names) for row in rows)
    return await call.long_json({"decisions": shown})


def number(call: Call, key: str) -> int | None:
    text = call.query.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 16 and int(text)):
        raise bad_request(f"{key}: {text!r} is no positive number")
    return int(text)


def providers_in(rows: Iterable[Row]) -> set[str]:
    found: set[str] = set()
    for row in rows:
        document = orjson.loads(row[3])
        for option in (document["chosen"], *document["passed_over"]):
            found.update(option["allocations"])
    return found


def as_json(row: Row, names: dict[str, provider_names.NamedProvider]) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(row[3])
    for option in (document["chosen"], *document["passed_over"]):
        option["allocations"] = {
            uuid: {"name": names[uuid].name if uuid in names else None, "resources": resources}
            for uuid, resources in option["allocations"].items()
        }
    at = datetime.fromtimestamp(row[1], UTC).isoformat().replace("+00:00", "Z")
    return {"id": row[0], "at": at, "consumer": row[2], **document}
