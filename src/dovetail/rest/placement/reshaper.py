"""/reshaper: inventories move between providers, and what is held of them with them."""

from __future__ import annotations

from dovetail.aio.pace import Pace
from dovetail.core.errors import (
    InventoryInUse,
    NotFound,
    ProviderNotFound,
    Refused,
    StaleGeneration,
)
from dovetail.core.inventory import Inventory
from dovetail.ledger import reshaping
from dovetail.ledger.claims import UnknownProvider
from dovetail.rest.placement import errors, schemas
from dovetail.rest.placement.allocations import claim_of
from dovetail.rest.placement.inventories import stock_of
from dovetail.rest.server.errors import HttpError, bad_request, conflict
from dovetail.rest.server.http import Call, Reply


async def reshape(call: Call) -> Reply:
    data = await schemas.RESHAPE.at(call.version).body(call)
    pace, wanted = Pace(), dict[str, tuple[int, dict[str, Inventory]]]()
    for uuid, item in data["inventories"].items():
        stock = await stock_of(pace, item["inventories"])
        wanted[uuid] = (item["resource_provider_generation"], stock)
    allocations = data["allocations"].items()
    claims = [await claim_of(call, pace, consumer, item) for consumer, item in allocations]
    try:
        await call.write(lambda tx: reshaping.reshape(tx, wanted, claims))
    except ProviderNotFound as error:
        raise bad_request(
            f"Resource provider {error.uuid} in inventories not found: {error}",
            errors.PROVIDER_NOT_FOUND,
        ) from error
    except (StaleGeneration, UnknownProvider, NotFound, InventoryInUse, Refused) as error:
        raise refusal(error) from error
    return call.empty()


def refusal(error: Exception) -> HttpError:
    match error:
        case StaleGeneration():
            return conflict(str(error), errors.CONCURRENT_UPDATE)
        case UnknownProvider():
            return bad_request(str(error))
        case NotFound():
            return bad_request(f"malformed reshaper data: {error}")
        case InventoryInUse():
            return conflict(f"update conflict: {error}", errors.INVENTORY_IN_USE)
        case _:
            return conflict(f"Unable to allocate inventory: {error}")
