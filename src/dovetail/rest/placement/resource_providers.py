"""/resource_providers and /resource_providers/{uuid}: what amounts are had from, in trees."""

from __future__ import annotations

import uuid as uuids
from typing import Any

from dovetail.core.errors import (
    BadParent,
    ClassNotFound,
    ProviderExists,
    ProviderInUse,
    ProviderIsParent,
    ProviderNotFound,
    TraitNotFound,
)
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, provider_search, providers
from dovetail.rest.placement import errors, schemas
from dovetail.rest.query import filters
from dovetail.rest.server.errors import bad_request, conflict, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList

LINKS = ((0, "inventories"), (0, "usages"), (1, "aggregates"), (6, "traits"), (11, "allocations"))


def path(provider: Provider) -> str:
    return f"/resource_providers/{provider.uuid}"


def document(call: Call, provider: Provider) -> dict[str, Any]:
    own = path(provider)
    links = [{"rel": "self", "href": own}]
    links += [{"rel": rel, "href": f"{own}/{rel}"} for since, rel in LINKS if call.since(since)]
    shown: dict[str, Any] = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
    }
    if call.since(14):
        shown["parent_provider_uuid"] = provider.parent_uuid
        shown["root_provider_uuid"] = provider.root_uuid
    return shown


async def create(call: Call) -> Reply:
    data = await schemas.POST_PROVIDER.at(call.version).body(call)
    # Any writing of a UUID is taken; one is kept.
    uuid = str(uuids.UUID(data["uuid"])) if data.get("uuid") else str(uuids.uuid4())
    name, parent = data["name"], data.get("parent_provider_uuid")
    try:
        provider = await call.write(lambda tx: providers.create(tx, name, uuid, parent))
    except BadParent as error:
        raise bad_request(
            f'Unable to create resource provider "{name}", {uuid}: '
            f"Object action create failed because: {error}"
        ) from error
    location = call.url(path(provider))
    if call.since(20):
        return call.json(document(call, provider), modified=provider.changed_at, location=location)
    return call.empty(201, location=location)


async def listing(call: Call) -> Reply:
    schemas.LIST_PROVIDERS.at(call.version).query(call.query)
    member_of, not_member_of = filters.member_of(call)
    required, forbidden = filters.required_traits(call)
    asked = call.query.get("resources")
    wanted = provider_search.ProviderFilter(
        name=call.query.get("name") or None,
        uuid=call.query.get("uuid") or None,
        in_tree=call.query.get("in_tree") or None,
        resources=filters.resources(asked) if asked is not None else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        not_member_of=not_member_of,
    )
    try:
        found = await call.read(lambda tx: provider_search.listing(tx, wanted))
    except ClassNotFound as error:
        raise bad_request(f"Invalid resource class in resources parameter: {error}") from error
    except TraitNotFound as error:
        raise bad_request(f'Invalid trait(s) in "required" parameter: {error}') from error
    modified = max((provider.changed_at for provider in found), default=None)
    shown = LongList(document(call, provider) for provider in found)
    return await call.long_json({"resource_providers": shown}, modified=modified)


async def show(call: Call) -> Reply:
    provider = await call.read(lambda tx: providers.get(tx, call.params["uuid"]))
    return call.json(document(call, provider), modified=provider.changed_at)


async def update(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = await schemas.PUT_PROVIDER.at(call.version).body(call)

    def change(tx: Transaction) -> Provider:
        provider = providers.get_locked(tx, uuid)
        if "parent_provider_uuid" in data:
            parent = data["parent_provider_uuid"]
            providers.move(tx, provider, parent, free=call.since(37))
        providers.rename(tx, provider, data["name"])
        return providers.get(tx, uuid)

    try:
        provider = await call.write(change)
    except ProviderExists as error:
        raise conflict(
            f"Conflicting resource provider {data['name']} already exists.", errors.DUPLICATE_NAME
        ) from error
    except BadParent as error:
        raise bad_request(
            f"Unable to save resource provider {uuid}: Object action update failed because: {error}"
        ) from error
    return call.json(document(call, provider), modified=provider.changed_at)


async def delete(call: Call) -> Reply:
    uuid = call.params["uuid"]
    try:
        await call.write(lambda tx: providers.delete(tx, uuid))
    except ProviderNotFound as error:
        raise not_found(f"No resource provider with uuid {uuid} found for delete") from error
    except ProviderInUse as error:
        raise conflict(
            f"Unable to delete resource provider {uuid}: {error}", errors.PROVIDER_IN_USE
        ) from error
    except ProviderIsParent as error:
        raise conflict(
            f"Unable to delete parent resource provider {uuid}: {error}", errors.PROVIDER_IS_PARENT
        ) from error
    return call.empty()
