"""/allocations, /allocations/{consumer_uuid} and /resource_providers/{uuid}/allocations: claims."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.aio.pace import Pace
from dovetail.core.claim import Claim
from dovetail.core.errors import ProviderNotFound, Refused, StaleGeneration
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, claims, providers
from dovetail.ledger.claims import UnknownProvider
from dovetail.rest.placement import errors, schemas
from dovetail.rest.server.errors import HttpError, bad_request, conflict, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongObject
from dovetail.rest.server.validation import is_uuid_like
from dovetail.service import claims as claiming
from dovetail.service.claims import UNNAMED_OWNER


async def claim_of(call: Call, pace: Pace, consumer: str, data: Mapping[str, Any]) -> Claim:
    """Clients older than 1.8 name no owner."""
    held = data["allocations"]
    if not call.since(12):
        held = {item["resource_provider"]["uuid"]: item for item in held}
    allocations: dict[str, dict[str, int]] = {}
    for uuid, item in held.items():
        allocations[uuid] = {name: int(amount) for name, amount in item["resources"].items()}
        await pace.give_way()
    return Claim(
        consumer=consumer,
        project=data.get("project_id", UNNAMED_OWNER),
        user=data.get("user_id", UNNAMED_OWNER),
        consumer_type=data.get("consumer_type"),
        allocations=allocations,
        generation=data.get("consumer_generation"),
        check_generation=call.since(28),
    )


def refusal(error: Exception, not_found_lead: str) -> HttpError:
    """What a claim that was not granted is answered with."""
    if isinstance(error, UnknownProvider):
        return bad_request(str(error))
    if isinstance(error, StaleGeneration):
        return conflict(str(error), errors.CONCURRENT_UPDATE)
    if isinstance(error, Refused):
        return conflict(f"Unable to allocate inventory: {error}")
    return bad_request(f"{not_found_lead} {error}")


async def replace(call: Call) -> Reply:
    """PUT for one consumer."""
    given = call.params["consumer_uuid"]
    if not is_uuid_like(given):
        raise bad_request(f"Malformed consumer_uuid: {given}")
    consumer = str(uuids.UUID(given))
    data = await schemas.PUT_ALLOCATIONS.at(call.version).body(call)
    claim = await claim_of(call, Pace(), consumer, data)
    try:
        await commit(call, [claim])
    except claiming.NOT_GRANTED as error:
        lead = f"Unable to allocate inventory for consumer {consumer}:"
        raise refusal(error, lead) from error
    return call.empty()


async def commit(call: Call, wanted: Sequence[Claim]) -> None:
    call.is_claiming = True
    await claiming.claim(call.backend.ledger, call.backend.recent_answers, wanted)


async def replace_several(call: Call) -> Reply:
    """POST for many consumers at once, all or nothing."""
    data = await schemas.POST_ALLOCATIONS.at(call.version).body(call)
    pace = Pace()
    wanted = [await claim_of(call, pace, consumer, item) for consumer, item in data.items()]
    try:
        await commit(call, wanted)
    except claiming.NOT_GRANTED as error:
        raise refusal(error, "Unable to allocate inventory") from error
    return call.empty()


async def show(call: Call) -> Reply:
    holding = await call.read(lambda tx: claims.of_consumer(tx, call.params["consumer_uuid"]))
    if holding is None:
        return call.json({"allocations": {}})
    pace, by_provider = Pace(), dict[str, dict[str, Any]]()
    for held in holding.held:
        item = by_provider.setdefault(
            held.provider_uuid, {"resources": {}, "generation": held.provider_generation}
        )
        item["resources"][held.class_name] = held.amount
        await pace.give_way()
    shown: dict[str, Any] = {"allocations": LongObject(by_provider.items())}
    if call.since(12):
        shown |= {"project_id": holding.project, "user_id": holding.user}
    if call.since(28):
        shown["consumer_generation"] = holding.generation
    if call.since(38):
        shown["consumer_type"] = holding.consumer_type or "unknown"
    return await call.long_json(shown, modified=max(held.created_at for held in holding.held))


async def delete(call: Call) -> Reply:
    consumer = call.params["consumer_uuid"]
    if not await claiming.release(call.backend.ledger, consumer):
        raise not_found(f"No allocations for consumer '{consumer}'")
    return call.empty()


async def on_provider(call: Call) -> Reply:
    uuid = call.params["uuid"]

    def read(tx: Transaction) -> tuple[Provider, list[tuple[str, int, str, int, int]]]:
        provider = providers.get(tx, uuid)
        return provider, claims.on_provider(tx, provider)

    try:
        provider, rows = await call.read(read)
    except ProviderNotFound as error:
        raise not_found(f"Resource provider '{uuid}' not found: {error}") from error
    pace, by_consumer = Pace(), dict[str, dict[str, Any]]()
    for consumer, generation, name, amount, _ in rows:
        item = by_consumer.setdefault(consumer, {"resources": {}})
        item["resources"][name] = amount
        if call.since(28):
            item["consumer_generation"] = generation
        await pace.give_way()
    shown = {
        "allocations": LongObject(by_consumer.items()),
        "resource_provider_generation": provider.generation,
    }
    return await call.long_json(shown, modified=max((row[4] for row in rows), default=None))
