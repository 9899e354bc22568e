"""/resource_classes and /resource_classes/{name}: kinds of amounts, such as VCPU."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import ClassExists, ClassInUse, StandardName
from dovetail.ledger import resource_classes
from dovetail.rest.placement import schemas
from dovetail.rest.server.errors import bad_request, conflict
from dovetail.rest.server.headers import require_json
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList


def document(name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": f"/resource_classes/{name}"}]}


async def listing(call: Call) -> Reply:
    found = await call.read(resource_classes.listing)
    modified = max((item.changed_at for item in found), default=None)
    shown = LongList(document(item.name) for item in found)
    return await call.long_json({"resource_classes": shown}, modified=modified)


async def show(call: Call) -> Reply:
    found = await call.read(lambda tx: resource_classes.get(tx, call.params["name"]))
    return call.json(document(found.name), modified=found.changed_at)


async def create(call: Call) -> Reply:
    name = (await schemas.RESOURCE_CLASS.body(call))["name"]
    try:
        await call.write(lambda tx: resource_classes.create(tx, name))
    except ClassExists as error:
        raise conflict(f"Conflicting resource class already exists: {name}") from error
    return call.empty(201, location=call.url(f"/resource_classes/{name}"))


async def update(call: Call) -> Reply:
    """Until 1.6 a new name for the class; from 1.7 on make sure that it exists."""
    name = call.params["name"]
    if call.since(7):
        schemas.RESOURCE_CLASS.check({"name": name})
        made = await call.write(lambda tx: resource_classes.ensure(tx, name))
        location = call.url(f"/resource_classes/{name}")
        return call.empty(201 if made else 204, location=location)
    require_json(call.request.headers)
    new_name = (await schemas.RESOURCE_CLASS.body(call))["name"]
    try:
        found = await call.write(lambda tx: resource_classes.rename(tx, name, new_name))
    except ClassExists as error:
        raise conflict(f"Resource class already exists: {new_name}") from error
    return call.json(document(found.name))


async def delete(call: Call) -> Reply:
    try:
        await call.write(lambda tx: resource_classes.delete(tx, call.params["name"]))
    except StandardName as error:
        raise bad_request(f"Error in delete resource class: {error}") from error
    except ClassInUse as error:
        raise conflict(f"Error in delete resource class: {error}") from error
    return call.empty()
