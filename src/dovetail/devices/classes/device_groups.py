"""Groups of devices that a set of selectors cannot tell apart, so that each looks at them once.

Lint and explanations of a class over a fleet group devices so; the inventory keeps its equivalence
classes up to date instead (`allocation.equivalence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.core.device import Device
from dovetail.devices.classes.documents import DeviceClass


class DeviceGroup(msgspec.Struct, frozen=True):
    attributes: Mapping[str, str]
    """Those that matter to the selectors."""
    devices: list[Device]

    @property
    def units(self) -> int:
        return sum(each.units for each in self.devices)

    @property
    def healthy(self) -> int:
        """Units of healthy devices."""
        return sum(each.units for each in self.devices if each.healthy)


def keys_of(classes: Iterable[DeviceClass]) -> frozenset[str]:
    return frozenset(each.key for cls in classes for branch in cls.selector for each in branch)


def groups_of(devices: Sequence[Device], keys: frozenset[str]) -> tuple[DeviceGroup, ...]:
    """In the order in which each kind first appears."""
    found: dict[frozenset[tuple[str, str]], DeviceGroup] = {}
    for device in devices:
        seen = {key: value for key, value in device.attributes.items() if key in keys}
        mark = frozenset(seen.items())
        if mark not in found:
            found[mark] = DeviceGroup(seen, [])
        found[mark].devices.append(device)
    return tuple(found.values())
