"""Worlds: a snapshot with some of it freed and some of it taken, without copying the fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from dovetail.core.columns import Column
from dovetail.engine.inventories import ClassInventories
from dovetail.engine.moves.holders import RowClass
from dovetail.engine.snapshot import Snapshot


class SupposedFleet:
    """What is free where, told as differences from a snapshot that stays as it is."""

    def __init__(self, base: Snapshot, freed: Mapping[RowClass, int] | None = None) -> None:
        self._base = base
        self.freed: Counter[RowClass] = Counter(freed or {})

    def copy(self) -> SupposedFleet:
        return SupposedFleet(self._base, self.freed)

    def free(self, amounts: Mapping[RowClass, int]) -> None:
        self.freed.update(amounts)

    def take(self, amounts: Mapping[RowClass, int]) -> None:
        self.freed.subtract(amounts)

    def has_room(self, amounts: Mapping[RowClass, int]) -> bool:
        return all(self._left(at) >= amount for at, amount in amounts.items())

    def _left(self, at: RowClass) -> int:
        inventories = self._base.inventories_of(at[1])
        entry = None if inventories is None else inventories.entry(at[0])
        if inventories is None or entry is None:
            return 0
        return int(inventories.free.values[entry]) + self.freed[at]

    def scarcer(self, other: SupposedFleet) -> SupposedFleet:
        """What is free in both."""
        places = {*self.freed, *other.freed}
        return SupposedFleet(
            self._base, {at: min(self.freed[at], other.freed[at]) for at in places}
        )

    def snapshot(self) -> Snapshot:
        """To be read: it shares its columns with the one that it is told from."""
        # Nothing that was worked out for the fleet as it is holds for this one.
        twin = self._base.without_usage()
        twin.inventories = dict(self._base.inventories)
        changed: dict[str, dict[int, int]] = {}
        for (row, name), amount in self.freed.items():
            if amount:
                changed.setdefault(name, {})[row] = amount
        for name, by_row in changed.items():
            inventories = self._base.inventories_of(name)
            if inventories is not None:
                class_id = self._base.class_ids[name]
                twin.inventories[class_id] = with_more_free(inventories, by_row)
        return twin


def with_more_free(inventories: ClassInventories, by_row: Mapping[int, int]) -> ClassInventories:
    twin = inventories.without_usage()
    free = inventories.free.values.copy()
    for row, amount in by_row.items():
        at = inventories.entry(row)
        if at is not None:
            free[at] += amount
    twin.free = Column(np.int64)
    twin.free.extend(free)
    return twin
