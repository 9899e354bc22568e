"""Resource classes and devices for `dovetail classes`, from the server or from files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dovetail.cli.support.client import ServerClient
from dovetail.cli.support.documents import documents
from dovetail.cli.support.exits import LocalFailure
from dovetail.core.device import Device
from dovetail.devices.classes.documents import BadClass, DeviceClass, read, write

CLASSES = "/dovetail/v1/classes"
DEVICES = "/dovetail/v1/devices"
API_VERSION = "dovetail.dev/v1alpha1"

FIELDS = {field.name for field in msgspec.structs.fields(Device)} | {"used"}
"""Of a device as the server lists it."""

Definitions = dict[str, DeviceClass]


def classes(server: ServerClient, file: Path | None) -> Definitions:
    if file is None:
        found = server.get(CLASSES)["classes"]
        return {each["name"]: read(each["name"], each["spec"]) for each in found}
    definitions: Definitions = {}
    for at, each in enumerate(listed(file, "classes"), 1):
        definition = as_class(file, at, each)
        if definition.name in definitions:
            raise LocalFailure(f"{file}, class {at}: {definition.name!r} is there already")
        definitions[definition.name] = definition
    return definitions


def as_class(file: Path, at: int, given: Any) -> DeviceClass:
    """From an object as Kubernetes has it, or as the server lists it."""
    fields = given if isinstance(given, dict) else {}
    metadata = fields.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else fields.get("name")
    if not isinstance(name, str):
        raise LocalFailure(f"{file}, class {at}: has no name, neither `metadata.name` nor `name`")
    try:
        return read(name, fields.get("spec"))  # type: ignore[arg-type]
    except BadClass as error:
        raise LocalFailure(f"{file}: {error}") from error


def devices(server: ServerClient, file: Path | None) -> list[Device]:
    if file is None:
        # Whatever else a newer server may say of them.
        return msgspec.convert(server.get(DEVICES)["devices"], type=list[Device])
    found = []
    for at, each in enumerate(listed(file, "devices"), 1):
        try:
            found.append(as_device(each))
        except msgspec.ValidationError as error:
            raise LocalFailure(f"{file}, device {at}: {error}") from error
    return found


def as_device(given: Any) -> Device:
    unknown = sorted(given.keys() - FIELDS) if isinstance(given, dict) else []
    if unknown:
        raise msgspec.ValidationError(
            f"no such field: {', '.join(map(repr, unknown))}; there are {', '.join(sorted(FIELDS))}"
        )
    device = msgspec.convert(given, type=Device)
    if device.units < 1:
        raise msgspec.ValidationError(f"units: {device.units}; at least 1 is expected")
    return device


def listed(file: Path, key: str) -> Iterator[Any]:
    """The items of all documents: each is a list, an object with a list under `key`, or an item."""
    for each in documents(file):
        inside = each.get(key, each.get("items")) if isinstance(each, dict) else None
        if isinstance(inside, list):
            yield from inside
        elif isinstance(each, list):
            yield from each
        elif each is not None:
            yield each


def document(file: Path) -> dict[str, Any]:
    """The only one of a file."""
    found = [each for each in documents(file) if each is not None]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise LocalFailure(f"{file}: one object is expected, not {len(found)} documents")
    return found[0]


def manifest(definition: DeviceClass) -> dict[str, Any]:
    """The class as an object of Kubernetes."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClass",
        "metadata": {"name": definition.name},
        "spec": write(definition),
    }
