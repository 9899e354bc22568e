"""The devices of one node, as the book keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from dovetail.core.device import MOST_UNITS, Device
from dovetail.devices.allocation.allocations import DeviceAllocations
from dovetail.devices.allocation.equivalence import EquivalenceClasses
from dovetail.devices.allocation.solver.problem import DevicePlace


class BadDevices(ValueError):
    """A list of devices that no node can have."""


class NodeDevices:
    """Devices by (kind, name), the order in which they are handed out."""

    __slots__ = ("_index", "devices", "free", "node", "row", "shapes", "units")

    def __init__(self, node: str, devices: Sequence[Device]) -> None:
        """Raises BadDevices."""
        self.node = node
        self.row = -1
        self.devices = sorted(devices, key=attrgetter("kind", "name"))
        self._index = {each.name: index for index, each in enumerate(self.devices)}
        self._check()
        self.shapes: list[int] = []
        self.units = [each.units if each.healthy else 0 for each in self.devices]
        """That can be handed out: none of a device that is not healthy."""
        self.free = list(self.units)

    def _check(self) -> None:
        if len(self._index) < len(self.devices):
            names = [each.name for each in self.devices]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise BadDevices(f"node {self.node!r}: two devices are called {', '.join(twice)}")
        for each in self.devices:
            if not 1 <= each.units <= MOST_UNITS:
                raise BadDevices(
                    f"node {self.node!r}: device {each.name!r} has {each.units} units: 1 to"
                    f" {MOST_UNITS} are expected"
                )

    def find(self, device: str) -> Device | None:
        index = self._index.get(device)
        return None if index is None else self.devices[index]

    def reshape(self, shapes: EquivalenceClasses) -> None:
        self.shapes = [shapes.number(each) for each in self.devices]

    def recount(self, device: str, wanted: int) -> None:
        """So much of the device is held, if it is here."""
        index = self._index.get(device)
        if index is not None:
            self.free[index] = max(0, self.units[index] - wanted)

    def recount_all(self, holders: DeviceAllocations) -> None:
        for device in holders.devices(self.node):
            self.recount(device, holders.wanted(self.node, device))

    def open(self, mask: int, shapes: EquivalenceClasses) -> tuple[list[Device], list[DevicePlace]]:
        """Devices with units left that a class of the mask selects."""
        devices, places = [], []
        for device, number, free in zip(self.devices, self.shapes, self.free, strict=True):
            shape = shapes.all[number]
            if free and shape.mask & mask:
                devices.append(device)
                places.append(DevicePlace(number, shape.mask, shape.attributes, free))
        return devices, places


Pairs = tuple[tuple[int, int], ...]
"""The shape of each device that has units, and how many."""


def in_order(shapes: Sequence[int], units: Sequence[int]) -> Pairs:
    """As devices are handed out."""
    return tuple((shape, count) for shape, count in zip(shapes, units, strict=True) if count)


def pairs(shapes: Sequence[int], units: Sequence[int]) -> Pairs:
    """The same for all nodes that have alike devices, whatever these are called."""
    return tuple(sorted(in_order(shapes, units)))


def places_of(found: Pairs, shapes: EquivalenceClasses, mask: int) -> list[DevicePlace]:
    """Devices that a class of the mask selects."""
    listed = [(number, shapes.all[number], free) for number, free in found]
    return [
        DevicePlace(number, shape.mask, shape.attributes, free)
        for number, shape, free in listed
        if shape.mask & mask
    ]
