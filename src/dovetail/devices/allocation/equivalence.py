"""Equivalence classes of devices: those that no device class can tell apart.

Devices that agree in every key that any device class looks at are in one equivalence class. A
selector is evaluated once for each of these, so the cost of a device class follows the kinds of
hardware, not the number of devices; and the solver may exchange devices of one for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from dovetail.core.columns import FIRST_TABLE, Amounts, enlarged
from dovetail.core.device import RESERVED, Device

Selects = Callable[[Mapping[str, str]], bool]


class EquivalenceClass(msgspec.Struct, gc=False):
    attributes: Mapping[str, str]
    """Only the keys that some class looks at."""
    mask: int = 0
    """A bit for each device class that selects it, by the class's column."""


class EquivalenceClasses:
    """All of them in a fleet, and which device classes select them."""

    def __init__(self) -> None:
        self.all: list[EquivalenceClass] = []
        self.selected: Amounts = np.zeros((FIRST_TABLE, FIRST_TABLE), np.int64)
        """A line per device class: 1 for each equivalence class that it selects."""
        self.generation = 0
        """Raised when all numbers are given anew; what was numbered before means nothing."""
        self._keys: tuple[str, ...] = ()
        self._named = False
        self._numbers: dict[tuple[str | bool | None, ...], int] = {}
        self._selects: dict[int, Selects] = {}

    def looks_at(self, keys: frozenset[str]) -> bool:
        """Whether devices are told apart by all of these keys."""
        return keys <= {*self._keys, *RESERVED} and (self._named or "Name" not in keys)

    def look_at(self, keys: frozenset[str]) -> None:
        """Forgets all there are: from now on devices are told apart by these keys."""
        self._keys = tuple(sorted(keys.difference(RESERVED)))
        self._named = "Name" in keys
        self.generation += 1
        self.all.clear()
        self._numbers.clear()
        self.selected[:] = 0

    def number_of(self, device: Device) -> int:
        """The device's equivalence class, by its place in `all`."""
        name = device.name if self._named else None
        get = device.properties.get
        key = (device.kind, device.vendor, device.healthy, name, *map(get, self._keys))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._add(device)
        return found

    def _add(self, device: Device) -> int:
        seen = {*self._keys, *RESERVED} if self._named else {*self._keys, *RESERVED} - {"Name"}
        attributes = {key: value for key, value in device.attributes.items() if key in seen}
        found = EquivalenceClass(attributes)
        number = len(self.all)
        self.all.append(found)
        self._make_room(self.selected.shape[0], len(self.all))
        for column, selects in self._selects.items():
            self._decide(number, column, selects)
        return number

    def _decide(self, number: int, column: int, selects: Selects) -> None:
        found = self.all[number]
        if selects(found.attributes):
            found.mask |= 1 << column
            self.selected[column, number] = 1

    def set_class(self, column: int, selects: Selects) -> None:
        self.drop_class(column)
        self._selects[column] = selects
        self._make_room(column + 1, self.selected.shape[1])
        for number in range(len(self.all)):
            self._decide(number, column, selects)

    def drop_class(self, column: int) -> None:
        if self._selects.pop(column, None) is not None:
            self.selected[column] = 0
            for each in self.all:
                each.mask &= ~(1 << column)

    def has_overlap(self, columns: Iterable[int]) -> bool:
        """Whether some device is selected by two of these device classes."""
        return bool((self.selected[list(columns)].sum(axis=0) > 1).any())

    def _make_room(self, classes: int, numbers: int) -> None:
        self.selected = enlarged(self.selected, classes, numbers)
