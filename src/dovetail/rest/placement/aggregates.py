"""/resource_providers/{uuid}/aggregates: sets of providers that share something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, aggregates, providers
from dovetail.rest.placement import schemas
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


async def reply(call: Call, provider: Provider, found: Sequence[str]) -> Reply:
    shown: dict[str, Any] = {"aggregates": LongList(found)}
    if call.since(19):
        shown["resource_provider_generation"] = provider.generation
    return await call.long_json(shown)


async def listing(call: Call) -> Reply:
    def read(tx: Transaction) -> tuple[Provider, list[str]]:
        provider = providers.get(tx, call.params["uuid"])
        return provider, aggregates.of_provider(tx, provider)

    return await reply(call, *await call.read(read))


async def replace(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = await schemas.PUT_AGGREGATES.at(call.version).body(call)
    wanted = data["aggregates"] if call.since(19) else data

    def assign(tx: Transaction) -> Provider:
        if not call.since(19):
            provider = providers.get_locked(tx, uuid)
        else:
            known = data["resource_provider_generation"]
            provider = providers.bump(tx, providers.get_current(tx, uuid, known))
        aggregates.assign(tx, provider, wanted)
        return provider

    return await reply(call, await call.write(assign), wanted)
