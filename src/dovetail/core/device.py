"""A device of a node: something with properties that is handed out in whole units.

Agents, drivers and people publish lists of them; `faults_of` says which lists no node can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Protocol

import msgspec

HEALTH, HEALTHY, UNHEALTHY = "Health", "Healthy", "Unhealthy"
"""An attribute, and what it says: of a device, and of a node that is not ready."""

RESERVED = ("Kind", "Vendor", "Name", HEALTH)
"""Keys that stand for a device's own fields; no property may be called so."""

HELD_BY, KUBELET = "held-by", "kubelet"
"""Property of a device that the kubelet gave to a pod, on a node where both it and classes hand out
devices of one plugin. Such a device is not healthy: classes cannot have it."""

MOST_UNITS = 2**31 - 1
"""Of one device: sums over a fleet then stay far below where whole numbers of arrays end."""


class PluginOrigin(msgspec.Struct, frozen=True, tag="plugin"):
    """A plugin of the node has it: the node agent gets it there for a container, by its ID."""

    resource: str
    """As the plugin calls what it serves: `vendor.com/gpu`, or `nic` for one of the agent's own."""
    id: str
    """The plugin's, of whatever form: real ones have colons."""


class DraOrigin(msgspec.Struct, frozen=True, tag="dra"):
    """A DRA driver has it: the kubelet gets it there for a container that a claim names."""

    driver: str
    pool: str
    device: str
    """Its name in the pool."""


Origin = PluginOrigin | DraOrigin


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One instance (a GPU: one unit) or a named pool (hugepages: many)."""

    node: str
    name: str
    kind: str
    vendor: str = ""
    units: int = 1
    healthy: bool = True
    properties: Mapping[str, str] = {}
    origin: Origin | None = None
    """Who brings it into a container; nobody does if it was written down by hand."""

    @property
    def attributes(self) -> dict[str, str]:
        """What selectors look at: properties, and the own fields by their reserved keys."""
        return {
            **self.properties,
            "Kind": self.kind,
            "Vendor": self.vendor,
            "Name": self.name,
            HEALTH: HEALTHY if self.healthy else UNHEALTHY,
        }


class DeviceFault(Enum):
    """What is wrong with a device in a list; whoever refuses it says so in his own words."""

    NO_NAME = auto()
    NAME_TAKEN = auto()
    """By a device before it."""
    UNITS = auto()
    """Not from 1 to `MOST_UNITS`."""


class Listed(Protocol):
    """A device, or one as somebody wrote it down."""

    @property
    def name(self) -> str: ...

    @property
    def units(self) -> int: ...


def faults_of(devices: Iterable[Listed]) -> Iterator[tuple[DeviceFault, ...]]:
    """For each device of a node what is wrong with it."""
    names: set[str] = set()
    for each in devices:
        name, units_are_right = each.name, 1 <= each.units <= MOST_UNITS
        if name and units_are_right and name not in names:
            names.add(name)
            yield ()
            continue
        found = {
            DeviceFault.NO_NAME: not name,
            DeviceFault.NAME_TAKEN: name in names,
            DeviceFault.UNITS: not units_are_right,
        }
        names.add(name)
        yield tuple(fault for fault, is_there in found.items() if is_there)
