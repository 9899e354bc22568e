"""Pod annotation: how the devices that a pod got are written on it, by its binding.

The scheduler writes and reads the annotation, and the node agent reads which devices of plugins it
has to get for the pod's containers. One JSON annotation is the truth and carries a hash of itself.
Beside it stands an annotation per class and device, as the specification has it, for whoever reads
those; nothing here does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

from dovetail.core.device import Origin, PluginOrigin
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding

ALLOCATION = "dovetail.dev/allocation"
RENDERED = "scheduler.alpha.kubernetes.io/"
VERSION = 1

LONGEST = 63
"""Characters of an annotation's name, after the slash."""

TAIL = 10
"""Digits of the hash that ends a name which would be too long, or no name at all."""

ANNOTATION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)


class BadAllocation(Malformed):
    """An annotation that is not what was once written."""


class Allocation(msgspec.Struct, frozen=True):
    """The devices a pod has, and on which node."""

    node: str
    holdings: tuple[DeviceHolding, ...]
    origins: Mapping[str, PluginOrigin] = {}
    """By device: those that the node agent brings into containers."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A holding as it is written."""

    container: str
    class_name: str = msgspec.field(name="class")
    device: str
    units: int
    resource: str = ""
    id: str = ""
    """By which its plugin knows it; both are empty where no plugin has it."""


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    node: str
    devices: tuple[_Entry, ...]
    hash: str = ""


def annotations_of(
    node: str, holdings: Iterable[DeviceHolding], origins: Mapping[str, Origin] | None = None
) -> dict[str, str]:
    """Everything to write on a pod that got these devices; `origins` by device."""
    held = tuple(holdings)
    entries = tuple(_entry(each, (origins or {}).get(each.device)) for each in held)
    document = _Document(VERSION, node, entries)
    signed = msgspec.structs.replace(document, hash=_hash_of(document))
    units: dict[str, int] = {}
    for each in held:
        key = RENDERED + rendered_name(each.class_name, each.device)
        units[key] = units.get(key, 0) + each.units
    written = {key: str(count) for key, count in units.items()}
    return {ALLOCATION: msgspec.json.encode(signed).decode(), **written}


def read_allocation(annotations: Mapping[str, str]) -> Allocation | None:
    """What was written; None if nothing was. Raises BadAllocation."""
    text = annotations.get(ALLOCATION)
    if text is None:
        return None
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.DecodeError, UnicodeError) as bad:
        raise BadAllocation(f"{ALLOCATION}: {bad}") from bad
    if document.version != VERSION:
        raise BadAllocation(f"{ALLOCATION}: version {document.version}, {VERSION} is expected")
    if document.hash != _hash_of(document):
        raise BadAllocation(f"{ALLOCATION}: was edited: its hash is not that of its contents")
    try:
        holdings = [
            DeviceHolding(each.device, each.units, each.class_name, each.container)
            for each in document.devices
        ]
    except ValueError as bad:
        raise BadAllocation(f"{ALLOCATION}: {bad}") from bad
    origins = {
        each.device: PluginOrigin(each.resource, each.id)
        for each in document.devices
        if each.resource
    }
    return Allocation(document.node, tuple(holdings), origins)


def _entry(held: DeviceHolding, origin: Origin | None) -> _Entry:
    entry = _Entry(held.container, held.class_name, held.device, held.units)
    if isinstance(origin, PluginOrigin):
        return msgspec.structs.replace(entry, resource=origin.resource, id=origin.id)
    return entry


def _hash_of(document: _Document) -> str:
    bare = msgspec.structs.replace(document, hash="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


def rendered_name(class_name: str, device: str) -> str:
    """`resClass_<class>_<device>`; where that is no annotation's name, a hash ends it."""
    name = f"resClass_{class_name}_{device}"
    if len(name) <= LONGEST and ANNOTATION_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:TAIL]
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", name, flags=re.ASCII)
    return f"{safe[: LONGEST - TAIL - 1]}-{digest}"
