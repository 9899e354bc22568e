"""/resource_providers/{uuid}/inventories and .../inventories/{resource_class}: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.aio.pace import Pace
from dovetail.core.errors import (
    BadCapacity,
    ClassNotFound,
    InventoryInUse,
    InventoryNotFound,
    NotFound,
    ProviderNotFound,
    StaleGeneration,
)
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, inventories, providers
from dovetail.rest.placement import errors, schemas
from dovetail.rest.server.errors import bad_request, conflict, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongObject

FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size")


def inventory_of(data: Mapping[str, Any]) -> Inventory:
    numbers = {field: int(data[field]) for field in FIELDS if field in data}
    ratio = float(data.get("allocation_ratio", 1.0))
    return Inventory(**numbers, allocation_ratio=ratio)


async def stock_of(pace: Pace, data: Mapping[str, Mapping[str, Any]]) -> dict[str, Inventory]:
    stock: dict[str, Inventory] = {}
    for name, item in data.items():
        stock[name] = inventory_of(item)
        await pace.give_way()
    return stock


def document(inventory: Inventory) -> dict[str, Any]:
    shown: dict[str, Any] = {field: getattr(inventory, field) for field in FIELDS}
    shown["allocation_ratio"] = inventory.allocation_ratio
    return shown


def one(
    call: Call,
    provider: Provider,
    inventory: Inventory,
    modified: int,
    status: int = 200,
    **headers: str,
) -> Reply:
    shown = document(inventory)
    shown["resource_provider_generation"] = provider.generation
    return call.json(shown, status, modified=modified, **headers)


async def several(
    call: Call, provider: Provider, stock: Mapping[str, Inventory], modified: int | None
) -> Reply:
    shown = {
        "resource_provider_generation": provider.generation,
        "inventories": LongObject((name, document(each)) for name, each in stock.items()),
    }
    reply = await call.long_json(shown, modified=modified)
    if not stock:
        # Placement has the time of the newest inventory here, and of none where there is none.
        reply.headers.pop("last-modified", None)
    return reply


def check_capacity(call: Call, provider: Provider, stock: Mapping[str, Inventory]) -> None:
    inventories.refuse_bad_capacity(provider, stock, equal_is_bad=not call.since(26))


def expect(tx: Transaction, uuid: str, generation: int) -> Provider:
    """The provider, locked, at the generation that the client knows."""
    provider = providers.get_locked(tx, uuid)
    if provider.generation != generation:
        raise StaleGeneration("resource provider generation conflict")
    return provider


async def read_inventories(call: Call) -> tuple[Provider, dict[str, inventories.RecordedInventory]]:
    uuid = call.params["uuid"]

    def read(tx: Transaction) -> tuple[Provider, dict[str, inventories.RecordedInventory]]:
        provider = providers.get(tx, uuid)
        return provider, inventories.of_provider(tx, provider)

    try:
        return await call.read(read)
    except ProviderNotFound as error:
        raise not_found(f"No resource provider with uuid {uuid} found : {error}") from error


async def listing(call: Call) -> Reply:
    provider, stock = await read_inventories(call)
    modified = max((item.changed_at for item in stock.values()), default=None)
    held = {name: item.inventory for name, item in stock.items()}
    return await several(call, provider, held, modified)


async def show(call: Call) -> Reply:
    provider, stock = await read_inventories(call)
    name = call.params["resource_class"]
    if name not in stock:
        raise not_found(f"No inventory of class {name} for {provider.uuid}")
    return one(call, provider, stock[name].inventory, stock[name].changed_at)


async def create(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = await schemas.POST_INVENTORY.body(call)
    name, inventory = data["resource_class"], inventory_of(data)

    def add(tx: Transaction) -> Provider:
        provider = providers.get_locked(tx, uuid)
        check_capacity(call, provider, {name: inventory})
        return inventories.add(tx, provider, name, inventory)

    try:
        provider = await call.write(add)
    except StaleGeneration as error:
        raise conflict(f"Update conflict: {error}", errors.CONCURRENT_UPDATE) from error
    except (BadCapacity, ClassNotFound) as error:
        raise bad_request(
            f"Unable to create inventory for resource provider {uuid}: {error}"
        ) from error
    location = call.url(f"/resource_providers/{uuid}/inventories/{name}")
    return one(call, provider, inventory, provider.changed_at, 201, location=location)


async def update(call: Call) -> Reply:
    uuid, name = call.params["uuid"], call.params["resource_class"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = await schemas.PUT_INVENTORY.body(call)
    inventory = inventory_of(data)

    def change(tx: Transaction) -> Provider:
        provider = expect(tx, uuid, data["resource_provider_generation"])
        check_capacity(call, provider, {name: inventory})
        return inventories.change(tx, provider, name, inventory)

    try:
        provider = await call.write(change)
    except (InventoryNotFound, ClassNotFound) as error:
        raise bad_request(
            f"No inventory record with resource class for resource provider {uuid}: {error}"
        ) from error
    except BadCapacity as error:
        raise bad_request(
            f"Unable to update inventory for resource provider {uuid}: {error}"
        ) from error
    return one(call, provider, inventory, provider.changed_at)


async def replace(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.read(lambda tx: providers.get(tx, uuid))
    data = await schemas.PUT_INVENTORIES.body(call)
    stock = await stock_of(Pace(), data["inventories"])

    def assign(tx: Transaction) -> Provider:
        provider = expect(tx, uuid, data["resource_provider_generation"])
        check_capacity(call, provider, stock)
        return inventories.assign(tx, provider, stock)

    try:
        provider = await call.write(assign)
    except ClassNotFound as error:
        raise bad_request(
            f"Unknown resource class in inventory for resource provider {uuid}: {error}"
        ) from error
    except InventoryInUse as error:
        raise conflict(f"update conflict: {error}", errors.INVENTORY_IN_USE) from error
    except BadCapacity as error:
        raise bad_request(
            f"Unable to update inventory for resource provider {uuid}: {error}"
        ) from error
    return await several(call, provider, stock, provider.changed_at)


async def delete(call: Call) -> Reply:
    uuid, name = call.params["uuid"], call.params["resource_class"]
    await call.read(lambda tx: providers.get(tx, uuid))
    try:
        await call.write(lambda tx: inventories.remove(tx, providers.get_locked(tx, uuid), name))
    except InventoryInUse as error:
        raise conflict(
            f"Unable to delete inventory of class {name}: {error}", errors.CONCURRENT_UPDATE
        ) from error
    except NotFound as error:
        raise not_found(f"No inventory of class {name} found for delete: {error}") from error
    return call.empty()


async def delete_all(call: Call) -> Reply:
    uuid = call.params["uuid"]
    await call.write(lambda tx: inventories.assign(tx, providers.get_locked(tx, uuid), {}))
    return call.empty()
