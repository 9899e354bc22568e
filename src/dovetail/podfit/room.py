"""How much of each resource nodes have, and how much of it is free. Exact integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dovetail.podfit.columns import Column
from dovetail.podfit.pods import FARTHEST


class Room:
    """By row and resource. Sums are Python's integers, which never overflow; columns end where it
    makes no difference any more."""

    def __init__(self) -> None:
        self.free: dict[str, Column] = {}
        self.allocatable: dict[str, Column] = {}
        self._has: list[dict[str, int]] = []
        self._used: list[dict[str, int]] = []

    def reach(self, size: int) -> None:
        for columns in (self.free, self.allocatable):
            for column in columns.values():
                column.reach(size)
        while len(self._has) < size:
            self._has.append({})
            self._used.append({})

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        before, self._has[row] = self._has[row], dict(amounts)
        for name in before.keys() | amounts.keys():
            self._write(row, name)
            self.allocatable[name].values[row] = amounts.get(name, 0)

    def add(self, row: int, amounts: Iterable[tuple[str, int]], sign: int = 1) -> None:
        """Take room, or give it back."""
        used = self._used[row]
        for name, amount in amounts:
            used[name] = used.get(name, 0) + sign * amount
            self._write(row, name)
            if not used[name]:
                del used[name]

    def amounts(self, row: int, name: str) -> tuple[int, int]:
        """What the row has of it, and what is free: below nothing, if it was given too much."""
        has = self._has[row].get(name, 0)
        return has, has - self._used[row].get(name, 0)

    def _write(self, row: int, name: str) -> None:
        if name not in self.free:
            for columns in (self.free, self.allocatable):
                columns[name] = Column(np.int64)
                columns[name].reach(len(self._has))
        free = self.amounts(row, name)[1]
        self.free[name].values[row] = max(free, -FARTHEST)
