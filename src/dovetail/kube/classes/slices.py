"""Devices of ResourceSlices, as DRA drivers publish them; `sources` reads them.

Of a pool only the newest generation counts, and only if all its slices are there. A device's kind
is its attribute `kind` or `type`, or else the driver's name. Its attributes and capacities are its
properties, with their domain; by their plain name, too, if they are the driver's own; `Driver` is
the driver's name. So classes read well, and those that were DeviceClasses find what they look for.
Some devices are left to DRA: those that share counters are parts of one another, and handed out by
themselves they would be handed out twice; those with binding conditions have to be waited for,
those that several may have are not handed out whole, and those that count as CPU or memory of the
node are no devices beside these. Taints are read from the slice; DeviceTaintRules are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dovetail.core.device import RESERVED, Device, DraOrigin
from dovetail.devices.classes.dra.convention import DRIVER
from dovetail.podfit.objects import ResourceSlice

KINDS = ("kind", "type")
VENDOR = "vendor"
REPELLING = ("NoSchedule", "NoExecute")
LEFT_TO_DRA = (
    "consumesCounters",
    "bindingConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResourceMappings",
)
"""Fields of a device that is not handed out here, where they say something."""


def slice_devices(node: str, slices: Iterable[ResourceSlice]) -> Iterator[Device]:
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        if each.spec.node_name == node:
            pools[each.spec.driver, each.spec.pool.name].append(each)
    for (driver, pool), of_pool in sorted(pools.items()):
        for written in _devices(of_pool):
            if "name" in written and not any(written.get(field) for field in LEFT_TO_DRA):
                yield _device(node, driver, pool, written)


def device_name(driver: str, pool: str, device: str) -> str:
    """Unique on a node; pools may have slashes in their names, devices' names may not."""
    return f"{driver}.{pool.replace('/', '.')}.{device}"


def _devices(slices: Sequence[ResourceSlice]) -> Iterator[Mapping[str, Any]]:
    newest = max(each.spec.pool.generation for each in slices)
    current = [each for each in slices if each.spec.pool.generation == newest]
    if len(current) < max(each.spec.pool.resource_slice_count for each in current):
        return
    for each in sorted(current, key=lambda each: each.metadata.name):
        yield from each.spec.devices


def _device(node: str, driver: str, pool: str, written: Mapping[str, Any]) -> Device:
    told = {
        key: text
        for part in ("attributes", "capacity")
        for name, value in (written.get(part) or {}).items()
        if (text := _text(value)) is not None
        for key in _keys(name, driver)
    }
    return Device(
        node=node,
        name=device_name(driver, pool, written["name"]),
        kind=next((told[key] for key in KINDS if key in told), driver),
        vendor=told.get(VENDOR, ""),
        healthy=not any(each.get("effect") in REPELLING for each in written.get("taints") or ()),
        properties={
            **{key: text for key, text in told.items() if key not in RESERVED},
            DRIVER: driver,
        },
        origin=DraOrigin(driver, pool, written["name"]),
    )


def _keys(name: str, driver: str) -> tuple[str, ...]:
    domain, _, own = name.rpartition("/")
    return (own, f"{driver}/{own}") if domain in ("", driver) else (name,)


def _text(value: Mapping[str, Any]) -> str | None:
    """As a property has it; lists have no place there."""
    for kind in ("string", "version", "int", "bool", "value"):
        given = value.get(kind)
        if isinstance(given, bool):
            return "true" if given else "false"
        if isinstance(given, str | int):
            return str(given)
    return None
