"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.errors import StaleGeneration
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, aggregates, providers
from dovetail.rest.placement import schemas
from dovetail.rest.server import errors
from dovetail.rest.server.errors import conflict
from dovetail.rest.server.http import Call, Reply

STALE = (
    "Resource provider's generation already changed. Please update the generation and try again."
)


def reply(call: Call, provider: Provider, found: Sequence[str]) -> Reply:
    shown: dict[str, Any] = {"aggregates": list(found)}
    if call.since(19):
        shown["resource_provider_generation"] = provider.generation
    return call.json(shown)


async def listing(call: Call) -> Reply:
    def read(tx: Transaction) -> tuple[Provider, list[str]]:
        provider = providers.get(tx, call.params["uuid"])
        return provider, aggregates.of_provider(tx, provider)

    return reply(call, *await call.read(read))


async def replace(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = schemas.PUT_AGGREGATES.at(call.version).body(call)
    wanted = data["aggregates"] if call.since(19) else data

    def assign(tx: Transaction) -> Provider:
        provider = providers.get_locked(tx, uuid)
        if call.since(19):
            if provider.generation != data["resource_provider_generation"]:
                raise StaleGeneration(STALE)
            provider = providers.bump(tx, provider)
        aggregates.assign(tx, provider, wanted)
        return provider

    try:
        provider = await call.write(assign)
    except StaleGeneration as error:
        raise conflict(str(error), errors.CONCURRENT_UPDATE) from error
    return reply(call, provider, wanted)
