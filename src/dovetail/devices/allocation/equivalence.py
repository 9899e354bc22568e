"""Shapes: what classes can tell devices apart by.

Devices that agree in every key that any class looks at have one shape. A selector is evaluated once
per shape, so the cost of a class follows the kinds of hardware, not the number of devices; and
devices of one shape are interchangeable to whoever chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from dovetail.core.device import RESERVED, Device
from dovetail.devices.allocation.arrays import SPARE, Ints, enlarged

Selects = Callable[[Mapping[str, str]], bool]


class EquivalenceClass(msgspec.Struct, gc=False):
    attributes: Mapping[str, str]
    """Only the keys that some class looks at."""
    mask: int = 0
    """A bit for each class that selects it, by the class's column."""


class EquivalenceClasses:
    """All shapes of the fleet, and which classes select them."""

    def __init__(self) -> None:
        self.all: list[EquivalenceClass] = []
        self.selected: Ints = np.zeros((SPARE, SPARE), np.int64)
        """A line per class: 1 for each shape it selects."""
        self._keys: tuple[str, ...] = ()
        self._named = False
        self._numbers: dict[tuple[str | bool | None, ...], int] = {}
        self._selects: dict[int, Selects] = {}

    def looks_at(self, keys: frozenset[str]) -> bool:
        """Whether shapes are told apart by all of these keys."""
        return keys <= {*self._keys, *RESERVED} and (self._named or "Name" not in keys)

    def look_at(self, keys: frozenset[str]) -> None:
        """Forgets all shapes: from now on they are told apart by these keys."""
        self._keys = tuple(sorted(keys.difference(RESERVED)))
        self._named = "Name" in keys
        self.all.clear()
        self._numbers.clear()
        self.selected[:] = 0

    def number(self, device: Device) -> int:
        """The device's shape, by its place in `all`."""
        name = device.name if self._named else None
        get = device.properties.get
        key = (device.kind, device.vendor, device.healthy, name, *map(get, self._keys))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._added(device)
        return found

    def _added(self, device: Device) -> int:
        seen = {*self._keys, *RESERVED} if self._named else {*self._keys, *RESERVED} - {"Name"}
        attributes = {key: value for key, value in device.attributes.items() if key in seen}
        shape = EquivalenceClass(attributes)
        number = len(self.all)
        self.all.append(shape)
        self._make_room(self.selected.shape[0], len(self.all))
        for column, selects in self._selects.items():
            self._decide(number, column, selects)
        return number

    def _decide(self, number: int, column: int, selects: Selects) -> None:
        shape = self.all[number]
        if selects(shape.attributes):
            shape.mask |= 1 << column
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
            for shape in self.all:
                shape.mask &= ~(1 << column)

    def overlap(self, columns: Iterable[int]) -> bool:
        """Whether some shape is selected by two of these classes."""
        return bool((self.selected[list(columns)].sum(axis=0) > 1).any())

    def _make_room(self, classes: int, shapes: int) -> None:
        self.selected = enlarged(self.selected, classes, shapes)
