"""/dovetail/v1/classes: which devices each resource class selects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from dovetail.devices.allocation.request import ClassStatus
from dovetail.devices.classes.documents import BadClass, DeviceClass, read
from dovetail.ledger import Transaction, device_classes, devices
from dovetail.ledger.device_classes import Definition, DefinitionDiffers, DefinitionNotFound
from dovetail.ledger.devices import Unit
from dovetail.rest.dovetail import parameters
from dovetail.rest.server.errors import HttpError, bad_request, conflict
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList
from dovetail.rest.server.validation import refuse_nul
from dovetail.service.device_classes import as_document, of_document, statuses

LONGEST_BODY = 256 * 2**10
"""Every selector in it is looked at with every device."""


class ClassDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A class as it is sent: its `spec` is that of the Kubernetes object."""

    spec: dict[str, Any]


async def listing(call: Call) -> Reply:
    parameters.only(call.query)
    found, units = await call.read(everything)
    shown = await asyncio.to_thread(with_counts, found, units)
    return await call.long_json({"classes": LongList(shown.values())})


async def show(call: Call) -> Reply:
    parameters.only(call.query)
    return call.json(await class_json(call, call.params["class_name"]))


async def define(call: Call) -> Reply:
    parameters.only(call.query)
    name = call.params["class_name"]
    document = as_document(class_in(name, call.body))
    try:
        _, made = await call.write(lambda tx: device_classes.define(tx, name, document))
    except DefinitionDiffers as error:
        raise conflict(str(error)) from error
    return call.json(await class_json(call, name), 201 if made else 200)


async def drop(call: Call) -> Reply:
    parameters.only(call.query)
    name = call.params["class_name"]
    if not await call.write(lambda tx: device_classes.drop(tx, name)):
        raise DefinitionNotFound(name)
    return call.empty()


def everything(tx: Transaction) -> tuple[list[Definition], list[Unit]]:
    return device_classes.listing(tx), list(devices.units_of(tx).values())


async def class_json(call: Call, name: str) -> dict[str, Any]:
    # The others, too: it may be made of them.
    found, units = await call.read(everything)
    shown = await asyncio.to_thread(with_counts, found, units)
    if name not in shown:
        raise DefinitionNotFound(name)
    return shown[name]


def with_counts(found: Sequence[Definition], units: Sequence[Unit]) -> dict[str, dict[str, Any]]:
    """Each class as it is shown. Counting all units of a large fleet takes a while."""
    definitions = {each.name: of_document(each.name, each.document) for each in found}
    count: Mapping[str, ClassStatus] = statuses(definitions, units)
    return {each.name: as_json(each, count[each.name]) for each in found}


def as_json(definition: Definition, status: ClassStatus) -> dict[str, Any]:
    at = datetime.fromtimestamp(definition.created_at, UTC).isoformat().replace("+00:00", "Z")
    return {
        "name": definition.name,
        "spec": msgspec.json.decode(definition.document),
        "created_at": at,
        "allocatable": status.allocatable,
        "requested": status.requested,
        "available": status.available,
    }


def class_in(name: str, body: bytes) -> DeviceClass:
    if len(body) > LONGEST_BODY:
        raise HttpError(413, f"The definition of a class may have {LONGEST_BODY} bytes.")
    refuse_nul(body)
    try:
        return read(name, msgspec.json.decode(body, type=ClassDocument).spec)
    except BadClass as error:
        problems = [msgspec.structs.asdict(problem) for problem in error.problems]
        raise HttpError(400, str(error), extra={"problems": problems}) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the class is not as it should be: {error}") from error
