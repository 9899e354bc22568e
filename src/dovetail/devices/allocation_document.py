"""Allocation document: the devices that a pod got, as text that its binding writes on it.

The scheduler writes and reads it (`kube/classes/pod_annotation.py`), and the node agent reads which
devices of plugins it has to get for the pod's containers. It carries a hash of itself. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from dovetail.core.device import Origin, PluginOrigin
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding

ALLOCATION = "dovetail.dev/allocation"
"""The annotation of a pod that has the document."""

VERSION = 1


class BadAllocation(Malformed):
    """A document that is not what was once written."""


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


def write_allocation(
    node: str, holdings: Iterable[DeviceHolding], origins: Mapping[str, Origin] | None = None
) -> str:
    """`origins` by device."""
    entries = tuple(_entry(each, (origins or {}).get(each.device)) for each in holdings)
    document = _Document(VERSION, node, entries)
    signed = msgspec.structs.replace(document, hash=_hash_of(document))
    return msgspec.json.encode(signed).decode()


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
    origins: dict[str, PluginOrigin] = {}
    for each in document.devices:
        origin = PluginOrigin(each.resource, each.id)
        known = origins.setdefault(each.device, origin)
        if known != origin:
            raise BadAllocation(
                f"{ALLOCATION}: {each.device} is told to be {known.resource} {known.id} and "
                f"{origin.resource} {origin.id}"
            )
    from_plugins = {device: origin for device, origin in origins.items() if origin.resource}
    return Allocation(document.node, tuple(holdings), from_plugins)


def _entry(held: DeviceHolding, origin: Origin | None) -> _Entry:
    entry = _Entry(held.container, held.class_name, held.device, held.units)
    if isinstance(origin, PluginOrigin):
        return msgspec.structs.replace(entry, resource=origin.resource, id=origin.id)
    return entry


def _hash_of(document: _Document) -> str:
    bare = msgspec.structs.replace(document, hash="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
