"""What a pod asks for, and how the devices it got are written on it.

One JSON annotation is the truth and carries a hash of itself. Beside it stands an annotation per
class and device, as the specification has it, for whoever reads those; nothing here does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

from dovetail.core import quantity
from dovetail.core.device import MOST_UNITS
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.podfit.objects import Container
from dovetail.podfit.pods import CLASS_PREFIX, is_sidecar, pod_sum

ALLOCATION = "dovetail.dev/allocation"
RENDERED = "scheduler.alpha.kubernetes.io/"
VERSION = 1

LONGEST = 63
"""Characters of an annotation's name, after the slash."""

TAIL = 10
"""Digits of the hash that ends a name which would be too long, or no name at all."""

ANNOTATION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)


class BadDeviceRequest(Malformed):
    """A request for a class that cannot be met by any number of devices."""


class BadAllocation(Malformed):
    """An annotation that is not what was once written."""


class Allocation(msgspec.Struct, frozen=True):
    """The devices a pod has, and on which node."""

    node: str
    holdings: tuple[DeviceHolding, ...]


def device_requests_of(
    containers: Iterable[Container], init_containers: Iterable[Container] = ()
) -> tuple[DeviceRequest, ...]:
    """What the pod has to hold, container by container. Raises BadDeviceRequest.

    Containers and sidecars hold what they request. Init containers are over before those after
    them start: they use what later containers will hold, and only what goes beyond that is
    requested besides, once, by the one that needs most. The sum is Kubernetes' own (`pod_sum`).
    """
    steps = [
        *((each.name, _counts(each), is_sidecar(each)) for each in init_containers),
        *((each.name, _counts(each), True) for each in containers),
    ]
    found = pod_sum((counts, stays) for _, counts, stays in steps)
    beyond = [
        DeviceRequest(name, peak - found.staying.get(name, 0), steps[index][0])
        for name, (peak, index) in sorted(found.peaks.items())
        if peak > found.staying.get(name, 0)
    ]
    held = [
        DeviceRequest(name, count, container)
        for container, counts, stays in steps
        if stays
        for name, count in counts.items()
    ]
    return (*beyond, *held)


def _counts(container: Container) -> dict[str, int]:
    """Units by class, in the order of the classes' names: what is written has none of its own."""
    written = {
        "requests": container.resources.requests,
        "limits": container.resources.limits,
    }
    names = {name for side in written.values() for name in side if name.startswith(CLASS_PREFIX)}
    found: dict[str, int] = {}
    for name in sorted(names):
        counts = {
            side: _count(container, side, name, quantities[name])
            for side, quantities in written.items()
            if name in quantities
        }
        if len(set(counts.values())) > 1:
            raise BadDeviceRequest(
                f"container {container.name!r}: {name} has requests {counts['requests']} and limits"
                f" {counts['limits']}: they have to be equal"
            )
        found[name.removeprefix(CLASS_PREFIX)] = next(iter(counts.values()))
    return found


def _count(container: Container, side: str, name: str, written: str | float) -> int:
    where = f"container {container.name!r}: resources.{side}[{name!r}]"
    if name == CLASS_PREFIX:
        raise BadDeviceRequest(f"{where}: the name of a class is missing after the slash")
    try:
        billionths = quantity.nanos(str(written))
    except quantity.BadQuantity as bad:
        raise BadDeviceRequest(f"{where}: {bad}") from bad
    if billionths % quantity.ONE or billionths <= 0:
        raise BadDeviceRequest(
            f"{where} is {written}: devices are whole, and at least 1 is asked for"
        )
    if billionths > MOST_UNITS * quantity.ONE:
        raise BadDeviceRequest(f"{where} is {written}: no node has more than {MOST_UNITS} units")
    return billionths // quantity.ONE


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A holding as it is written."""

    container: str
    class_name: str = msgspec.field(name="class")
    device: str
    units: int


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    node: str
    devices: tuple[_Entry, ...]
    hash: str = ""


def annotations_of(node: str, holdings: Iterable[DeviceHolding]) -> dict[str, str]:
    """Everything to write on a pod that got these devices."""
    held = tuple(holdings)
    entries = tuple(
        _Entry(each.container, each.class_name, each.device, each.units) for each in held
    )
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
    return Allocation(document.node, tuple(holdings))


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
