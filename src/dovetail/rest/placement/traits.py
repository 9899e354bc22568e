"""/traits, /traits/{name} and /resource_providers/{uuid}/traits: what providers can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.errors import (
    ProviderNotFound,
    TraitNotFound,
)
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, providers, traits
from dovetail.ledger.traits import Trait
from dovetail.rest.placement import schemas
from dovetail.rest.server.errors import bad_request, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


async def reply(call: Call, found: Sequence[Trait], provider: Provider | None = None) -> Reply:
    shown: dict[str, Any] = {"traits": LongList(trait.name for trait in found)}
    if provider is not None:
        shown["resource_provider_generation"] = provider.generation
    modified = max((trait.created_at for trait in found), default=None)
    return await call.long_json(shown, modified=modified)


def by_name(text: str) -> dict[str, Any]:
    """`in:A,B` or `startswith:CUSTOM` as arguments of a listing."""
    operator, colon, value = text.partition(":")
    if not colon:
        raise bad_request(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{text}"'
        )
    if operator == "in":
        return {"names": value.split(",")}
    return {"prefix": value} if operator == "startswith" else {}


async def listing(call: Call) -> Reply:
    schemas.LIST_TRAITS.query(call.query)
    name, associated = call.query.get("name"), call.query.get("associated")
    wanted = by_name(name) if name is not None else {}
    if associated is not None:
        if associated.lower() not in {"true", "false"}:
            raise bad_request('The query parameter "associated" only accepts "true" or "false"')
        wanted["associated"] = associated.lower() == "true"
    return await reply(call, await call.read(lambda tx: traits.listing(tx, **wanted)))


async def show(call: Call) -> Reply:
    trait = await call.read(lambda tx: traits.get(tx, call.params["name"]))
    return call.empty(modified=trait.created_at)


async def ensure(call: Call) -> Reply:
    name = call.params["name"]
    if schemas.CUSTOM_TRAIT.complaint(name) is not None:
        raise bad_request(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    trait, made = await call.write(lambda tx: traits.ensure(tx, name))
    location = call.url(f"/traits/{name}")
    return call.empty(201 if made else 204, modified=trait.created_at, location=location)


async def delete(call: Call) -> Reply:
    await call.write(lambda tx: traits.delete(tx, call.params["name"]))
    return call.empty()


async def of_provider(call: Call) -> Reply:
    uuid = call.params["uuid"]

    def read(tx: Transaction) -> tuple[list[Trait], Provider]:
        provider = providers.get(tx, uuid)
        return traits.of_provider(tx, provider), provider

    try:
        found, provider = await call.read(read)
    except ProviderNotFound as error:
        raise not_found(f"No resource provider with uuid {uuid} found: {error}") from error
    return await reply(call, found, provider)


async def replace(call: Call) -> Reply:
    uuid = call.params["uuid"]
    data = await schemas.PUT_PROVIDER_TRAITS.body(call)
    names = set(data["traits"])

    def assign(tx: Transaction) -> tuple[list[Trait], Provider]:
        provider = providers.get_current(tx, uuid, data["resource_provider_generation"])
        found = traits.listing(tx, names=sorted(names))
        missing = names - {trait.name for trait in found}
        if missing:
            raise TraitNotFound(missing)
        return found, traits.assign(tx, provider, found)

    try:
        found, provider = await call.write(assign)
    except TraitNotFound as error:
        raise bad_request(str(error)) from error
    return await reply(call, found, provider)


async def delete_all(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.write(lambda tx: traits.assign(tx, providers.get_locked(tx, uuid), []))
    return call.empty()
