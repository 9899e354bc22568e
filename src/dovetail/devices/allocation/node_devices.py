"""The devices of one node with the units they have left, as the device inventory keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from dovetail.core.device import MOST_UNITS, Device, DeviceFault, faults_of
from dovetail.core.errors import BadDevices
from dovetail.devices.allocation.equivalence import EquivalenceClasses
from dovetail.devices.allocation.solver.problem import DevicePlace


class NodeDevices:
    """Devices by (kind, name), the order in which they are handed out."""

    __slots__ = ("_generation", "_index", "devices", "equivalence", "free", "node", "row", "units")

    def __init__(self, node: str, devices: Sequence[Device]) -> None:
        """Raises BadDevices."""
        self.node = node
        self.row = -1
        self.devices = sorted(devices, key=attrgetter("kind", "name"))
        self._index = {each.name: index for index, each in enumerate(self.devices)}
        self._check()
        self.equivalence: list[int] = []
        """By device, the number of its equivalence class; to be read after `classify`."""
        self._generation = -1
        self.units = [each.units if each.healthy else 0 for each in self.devices]
        """That can be handed out: none of a device that is not healthy."""
        self.free = list(self.units)

    def _check(self) -> None:
        faults = list(faults_of(self.devices))
        if any(faults):
            self._refuse(faults)

    def _refuse(self, faults: Sequence[Sequence[DeviceFault]]) -> None:
        faulty = list(zip(self.devices, faults, strict=True))
        twice = sorted({each.name for each, found in faulty if DeviceFault.NAME_TAKEN in found})
        if twice:
            raise BadDevices(f"node {self.node!r}: two devices are called {', '.join(twice)}")
        for each, found in faulty:
            if DeviceFault.UNITS in found:
                raise BadDevices(
                    f"node {self.node!r}: device {each.name!r} has {each.units} units: 1 to"
                    f" {MOST_UNITS} are expected"
                )

    def find(self, device: str) -> Device | None:
        index = self._index.get(device)
        return None if index is None else self.devices[index]

    def classify(self, classes: EquivalenceClasses) -> None:
        """Number the devices, unless that was done since numbers were last given anew."""
        if self._generation != classes.generation:
            self.equivalence = [classes.number_of(each) for each in self.devices]
            self._generation = classes.generation

    def set_held(self, device: str, units: int) -> None:
        """So much of the device is held, if it is here."""
        index = self._index.get(device)
        if index is not None:
            self.free[index] = max(0, self.units[index] - units)

    def free_places(
        self, mask: int, classes: EquivalenceClasses
    ) -> tuple[list[Device], list[DevicePlace]]:
        """Devices with units left that a class of the mask selects."""
        devices, places = [], []
        for device, number, free in zip(self.devices, self.equivalence, self.free, strict=True):
            found = classes.all[number]
            if free and found.mask & mask:
                devices.append(device)
                places.append(DevicePlace(number, found.mask, found.attributes, free))
        return devices, places


NodeState = tuple[tuple[int, int], ...]
"""The equivalence class of each device that has units, and how many."""


def ordered_state_of(equivalence: Sequence[int], units: Sequence[int]) -> NodeState:
    """As devices are handed out."""
    return tuple((number, count) for number, count in zip(equivalence, units, strict=True) if count)


def state_of(equivalence: Sequence[int], units: Sequence[int]) -> NodeState:
    """The same for all nodes that have equivalent devices, whatever these are called."""
    return tuple(sorted(ordered_state_of(equivalence, units)))


def places_of(state: NodeState, classes: EquivalenceClasses, mask: int) -> list[DevicePlace]:
    """Devices that a class of the mask selects."""
    listed = [(number, classes.all[number], free) for number, free in state]
    return [
        DevicePlace(number, found.mask, found.attributes, free)
        for number, found, free in listed
        if found.mask & mask
    ]
