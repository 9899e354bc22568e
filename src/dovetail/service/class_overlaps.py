"""What device classes have in common: units that two of them select, and on how many nodes each has
some left; the view of classes asks.

Devices that no selector tells apart are looked at once, and pairs of classes are counted in one
product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.classes.device_groups import DeviceGroup, groups_of, keys_of
from dovetail.devices.classes.documents import DeviceClass
from dovetail.ledger.devices import Unit


class ClassOverlap(msgspec.Struct, frozen=True):
    classes: tuple[str, str]
    units: int
    """Of healthy devices that both select."""
    available: int
    """Those of them that nobody holds."""


class ClassSpread(msgspec.Struct, frozen=True):
    """On how many nodes there is something of a class."""

    name: str
    nodes: int
    nodes_available: int
    """Where some of it is left."""


def overlaps_of(
    definitions: Mapping[str, DeviceClass], units: Iterable[Unit]
) -> tuple[list[ClassSpread], list[ClassOverlap]]:
    """Of classes that select devices; those made of other classes share what these do."""
    classes = [each for each in definitions.values() if not each.members]
    found = [(unit.device, unit.used) for unit in units]
    left = {id(device): max(device.units - used, 0) for device, used in found if device.healthy}
    kinds = groups_of([device for device, _ in found if device.healthy], keys_of(classes))
    selects = np.array(
        [
            [*map(compile_selector(each.selector), (kind.attributes for kind in kinds))]
            for each in classes
        ],
        dtype=np.float64,
    ).reshape(len(classes), len(kinds))
    free = [sum(left[id(device)] for device in kind.devices) for kind in kinds]
    healthy = np.array([kind.units for kind in kinds], np.float64)
    spreads = [
        spread(each, kinds, row > 0, left) for each, row in zip(classes, selects, strict=True)
    ]
    shared = (selects * healthy) @ selects.T
    available = (selects * np.array(free, np.float64)) @ selects.T
    pairs = zip(*np.nonzero(np.triu(shared, 1)), strict=True)
    return spreads, [
        ClassOverlap(
            (classes[one].name, classes[other].name),
            int(shared[one, other]),
            int(available[one, other]),
        )
        for one, other in pairs
    ]


def spread(
    of: DeviceClass,
    kinds: tuple[DeviceGroup, ...],
    selected: Iterable[bool],
    left: Mapping[int, int],
) -> ClassSpread:
    devices = [
        device
        for kind, mine in zip(kinds, selected, strict=True)
        if mine
        for device in kind.devices
    ]
    nodes = {device.node for device in devices}
    return ClassSpread(
        of.name, len(nodes), len({device.node for device in devices if left[id(device)]})
    )
