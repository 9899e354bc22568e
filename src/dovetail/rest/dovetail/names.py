"""POST /dovetail/v1/names: providers by name or UUID, and the host each belongs to."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from dovetail.ledger import provider_names
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongObject


class NamesRequest(msgspec.Struct, forbid_unknown_fields=True):
    providers: Annotated[list[str], Meta(max_length=100_000)]


async def look_up(call: Call) -> Reply:
    """Those that are unknown are not in the answer."""
    try:
        wanted = msgspec.json.decode(call.body, type=NamesRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not as it should be: {error}") from error
    found = await call.read(lambda tx: provider_names.find(tx, wanted.providers))
    shown = LongObject((key, as_json(named)) for key, named in found.items())
    return await call.long_json({"providers": shown})


def as_json(named: provider_names.NamedProvider) -> dict[str, str]:
    return {
        "name": named.name,
        "uuid": named.uuid,
        "host": named.host,
        "host_uuid": named.host_uuid,
    }
