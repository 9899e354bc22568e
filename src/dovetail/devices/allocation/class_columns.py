"""Class columns: the device classes of an inventory, each on a column of its counts.

The inventory keeps them for its class counts, fit cache and chooser. `ClassColumns` resolves nested
classes into the classes that select devices, as deep as these may go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dovetail.core.rows import Rows
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.hierarchy import DEEPEST

Leaves = Mapping[str, int]
"""Units of classes that select devices, by name."""


class ClassColumns:
    """A class may be there before its members are; until then nothing can be made of it."""

    def __init__(self) -> None:
        self.columns = Rows()
        self._classes: dict[str, DeviceClass] = {}
        self._leaves: dict[tuple[str, int], Leaves | None] = {}
        """By class, and how deep its members may go."""
        self._keys: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __getitem__(self, name: str) -> DeviceClass:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def put(self, cls: DeviceClass) -> int:
        """The class's column."""
        self._classes[cls.name] = cls
        self._forget_derived()
        return self.columns.row(cls.name)

    def remove(self, name: str) -> None:
        del self._classes[name]
        self.columns.drop(name)
        self._forget_derived()

    def _forget_derived(self) -> None:
        self._leaves.clear()
        self._keys = None

    @property
    def keys(self) -> frozenset[str]:
        """Everything that some class looks at."""
        if self._keys is None:
            classes = self._classes.values()
            self._keys = frozenset(key for cls in classes for key in _keys(cls))
        return self._keys

    def get(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def column(self, name: str) -> int:
        found = self.columns.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def bit(self, name: str) -> int:
        return 1 << self.column(name)

    def nested_names(self) -> list[str]:
        return [name for name, cls in self._classes.items() if cls.members]

    def leaves(self, name: str) -> Leaves | None:
        """What one unit takes; None if a class is missing, or goes too deep, or in a circle."""
        return self._parts(name, DEEPEST)

    def _parts(self, name: str, levels: int) -> Leaves | None:
        """As far as members are at most so many levels deep: a circle is deeper than any number."""
        key = name, levels
        if key not in self._leaves:
            self._leaves[key] = self._count_leaves(name, levels)
        return self._leaves[key]

    def _count_leaves(self, name: str, levels: int) -> Leaves | None:
        cls = self._classes.get(name)
        if cls is None:
            return None
        if not cls.members:
            return {name: 1}
        if not levels:
            return None
        found: dict[str, int] = {}
        for member in cls.members:
            parts = self._parts(member.name, levels - 1)
            if parts is None:
                return None
            for leaf, count in parts.items():
                found[leaf] = found.get(leaf, 0) + count * member.count
        return found

    def mask(self, name: str) -> int:
        """A bit for each class that units of this one are made of; the class has to be whole."""
        return sum(self.bit(leaf) for leaf in self.leaves(name) or ())

    def mask_of_all(self, names: Iterable[str]) -> int:
        """The same for units of several classes."""
        mask = 0
        for name in names:
            mask |= self.mask(name)
        return mask


def _keys(cls: DeviceClass) -> set[str]:
    return {each.key for branch in cls.selector for each in branch}.union(cls.same)
