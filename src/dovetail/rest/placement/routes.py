"""Every route of the Placement API: path, method, permission, version."""

from __future__ import annotations

from dovetail.rest.placement import (
    aggregates,
    allocation_candidates,
    allocations,
    inventories,
    reshaper,
    resource_classes,
    resource_providers,
    root,
    traits,
    usages,
)
from dovetail.rest.server.http import Version
from dovetail.rest.server.policy import RESHAPE, USAGES
from dovetail.rest.server.routing import Endpoint, Handler, Routes


def get(handler: Handler, action: str, since: Version = 0) -> Endpoint:
    return Endpoint(handler, f"placement:{action}", since, gives_json=True)


def send(handler: Handler, action: str, since: Version = 0, *, claims: bool = False) -> Endpoint:
    """A request with a JSON body."""
    return Endpoint(handler, f"placement:{action}", since, takes_json=True, claims=claims)


def bare(handler: Handler, action: str, since: Version = 0, missing: int = 404) -> Endpoint:
    """A request that neither needs a body nor promises JSON."""
    return Endpoint(handler, f"placement:{action}", since, missing)


HOME = Endpoint(root.home, public=True)
PROVIDER = "/resource_providers/{uuid}"

ROUTES: Routes = {
    "/": {"GET": HOME},
    "/resource_classes": {
        "GET": get(resource_classes.listing, "resource_classes:list", 2),
        "POST": send(resource_classes.create, "resource_classes:create", 2),
    },
    "/resource_classes/{name}": {
        "GET": get(resource_classes.show, "resource_classes:show", 2),
        "PUT": bare(resource_classes.update, "resource_classes:update", 2),
        "DELETE": bare(resource_classes.delete, "resource_classes:delete", 2),
    },
    "/resource_providers": {
        "GET": get(resource_providers.listing, "resource_providers:list"),
        "POST": send(resource_providers.create, "resource_providers:create"),
    },
    PROVIDER: {
        "GET": get(resource_providers.show, "resource_providers:show"),
        "PUT": send(resource_providers.update, "resource_providers:update"),
        "DELETE": bare(resource_providers.delete, "resource_providers:delete"),
    },
    f"{PROVIDER}/inventories": {
        "GET": get(inventories.listing, "resource_providers:inventories:list"),
        "POST": send(inventories.create, "resource_providers:inventories:create"),
        "PUT": send(inventories.replace, "resource_providers:inventories:update"),
        "DELETE": bare(inventories.delete_all, "resource_providers:inventories:delete", 5, 405),
    },
    f"{PROVIDER}/inventories/{{resource_class}}": {
        "GET": get(inventories.show, "resource_providers:inventories:show"),
        "PUT": send(inventories.update, "resource_providers:inventories:update"),
        "DELETE": bare(inventories.delete, "resource_providers:inventories:delete"),
    },
    f"{PROVIDER}/usages": {"GET": get(usages.of_provider, "resource_providers:usages")},
    f"{PROVIDER}/aggregates": {
        "GET": get(aggregates.listing, "resource_providers:aggregates:list", 1),
        "PUT": send(aggregates.replace, "resource_providers:aggregates:update", 1),
    },
    f"{PROVIDER}/allocations": {
        "GET": get(allocations.on_provider, "resource_providers:allocations:list")
    },
    f"{PROVIDER}/traits": {
        "GET": get(traits.of_provider, "resource_providers:traits:list", 6),
        "PUT": send(traits.replace, "resource_providers:traits:update", 6),
        "DELETE": bare(traits.delete_all, "resource_providers:traits:delete", 6),
    },
    "/allocations": {
        "POST": send(allocations.replace_several, "allocations:manage", 13, claims=True)
    },
    "/allocations/{consumer_uuid}": {
        "GET": get(allocations.show, "allocations:list"),
        "PUT": send(allocations.replace, "allocations:update", claims=True),
        "DELETE": bare(allocations.delete, "allocations:delete"),
    },
    "/allocation_candidates": {
        "GET": get(allocation_candidates.listing, "allocation_candidates:list", 10)
    },
    "/traits": {"GET": get(traits.listing, "traits:list", 6)},
    "/traits/{name}": {
        "GET": bare(traits.show, "traits:show", 6),
        "PUT": bare(traits.ensure, "traits:update", 6),
        "DELETE": bare(traits.delete, "traits:delete", 6),
    },
    "/usages": {"GET": get(usages.total, USAGES.removeprefix("placement:"), 9)},
    "/reshaper": {"POST": send(reshaper.reshape, RESHAPE.removeprefix("placement:"), 30)},
}
