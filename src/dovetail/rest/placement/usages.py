"""/usages and /resource_providers/{uuid}/usages: how much is held."""

from __future__ import annotations

from dovetail.core.errors import ProviderNotFound
from dovetail.core.provider import Provider
from dovetail.ledger import Transaction, providers, usages
from dovetail.rest.placement import schemas
from dovetail.rest.server.errors import not_found
from dovetail.rest.server.http import Call, Reply


async def of_provider(call: Call) -> Reply:
    uuid = call.params["uuid"]

    def read(tx: Transaction) -> tuple[Provider, dict[str, int]]:
        provider = providers.get(tx, uuid)
        return provider, usages.of_provider(tx, provider)

    try:
        provider, used = await call.read(read)
    except ProviderNotFound as error:
        raise not_found(f"No resource provider with uuid {uuid} found: {error}") from error
    return call.json({"resource_provider_generation": provider.generation, "usages": used})


async def total(call: Call) -> Reply:
    schemas.TOTAL_USAGES.at(call.version).query(call.query)
    project, user = call.query.last["project_id"], call.query.get("user_id")
    if not call.since(38):
        used = await call.read(lambda tx: usages.of_project(tx, project, user))
        return call.json({"usages": used})
    kind = call.query.get("consumer_type")
    grouped = await call.read(lambda tx: usages.by_type(tx, project, user, kind))
    return call.json(
        {
            "usages": {
                name: {**usage.amounts, "consumer_count": usage.consumers}
                for name, usage in grouped.items()
            }
        }
    )
