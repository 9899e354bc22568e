"""Devices of ResourceSlices, as DRA drivers publish them; `sources` reads them.

Of a pool only the newest generation counts, and only if all its slices are there and no device is
listed twice; slices of a pool may be of several nodes, or of none in particular. A device's kind
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
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
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


Pool = tuple[str, str]
"""Driver and name."""


class SlicesByNode:
    """Slices as an informer tells them, and what each node has to know of them."""

    def __init__(self) -> None:
        self._pools: dict[Pool, dict[str, ResourceSlice]] = {}
        """By name of the slice."""
        self._pools_of: dict[str, set[Pool]] = {}
        """By node."""

    def set_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> frozenset[str]:
        """A slice came (no old), changed or went (no new); nodes whose devices may be others."""
        told = [each for each in (old, new) if each is not None]
        pools = {pool_of(each) for each in told}
        before = {pool: self._standing(pool) for pool in pools}
        affected = {each.spec.node_name for each in told}
        nodes = {node for pool in pools for node in self._nodes(pool)}
        if old is not None:
            there = self._pools.get(pool_of(old), {})
            there.pop(old.key, None)
            if not there:
                self._pools.pop(pool_of(old), None)
        if new is not None:
            self._pools.setdefault(pool_of(new), {})[new.key] = new
        for pool in pools:
            now = self._nodes(pool)
            self._index(pool, nodes, now)
            if self._standing(pool) != before[pool]:
                affected |= nodes | now
        return frozenset(affected - {""})

    def of(self, node: str) -> tuple[ResourceSlice, ...]:
        """All slices of the pools that it has slices of."""
        pools = sorted(self._pools_of.get(node, ()))
        return tuple(each for pool in pools for each in self._pools[pool].values())

    def _nodes(self, pool: Pool) -> set[str]:
        found = (each.spec.node_name for each in self._pools.get(pool, {}).values())
        return {name for name in found if name}

    def _standing(self, pool: Pool) -> tuple[int, bool]:
        """Which generation counts, and whether its devices do."""
        slices = list(self._pools.get(pool, {}).values())
        return newest_generation(slices), bool(current_slices(slices))

    def _index(self, pool: Pool, before: Set[str], now: Set[str]) -> None:
        for node in before - now:
            there = self._pools_of.get(node, set())
            there.discard(pool)
            if not there:
                self._pools_of.pop(node, None)
        for node in now:
            self._pools_of.setdefault(node, set()).add(pool)


def pool_of(each: ResourceSlice) -> Pool:
    return each.spec.driver, each.spec.pool.name


def slice_devices(node: str, slices: Iterable[ResourceSlice]) -> Iterator[Device]:
    """Of slices of whole pools."""
    pools: dict[Pool, list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[pool_of(each)].append(each)
    for (driver, pool), of_pool in sorted(pools.items()):
        for written in _devices(node, of_pool):
            if "name" in written and not any(written.get(field) for field in LEFT_TO_DRA):
                yield _device(node, driver, pool, written)


def device_name(driver: str, pool: str, device: str) -> str:
    """Unique on a node; pools may have slashes in their names, devices' names may not."""
    return f"{driver}.{pool.replace('/', '.')}.{device}"


def newest_generation(slices: Iterable[ResourceSlice]) -> int:
    return max((each.spec.pool.generation for each in slices), default=0)


def current_slices(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """Those of a pool that count; none if some are missing, or they contradict each other."""
    newest = newest_generation(slices)
    current = [each for each in slices if each.spec.pool.generation == newest]
    if len(current) < max((each.spec.pool.resource_slice_count for each in current), default=0):
        return []
    names = [written.get("name") for each in current for written in each.spec.devices]
    return current if len(names) == len(set(names)) else []


def _devices(node: str, slices: Sequence[ResourceSlice]) -> Iterator[Mapping[str, Any]]:
    for each in sorted(current_slices(slices), key=lambda each: each.metadata.name):
        if each.spec.node_name == node:
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
