"""Multiset of (key, row): which pods, affinity terms and host ports are on which node.

`nodes.py` has one for each. Keys are interned, so that a rule is asked once per distinct key and
rows are counted without a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dovetail.core.columns import Amounts, Column, Numbers
from dovetail.core.interned import Interned

K = TypeVar("K", bound=Hashable)


class RowMultiset(Generic[K]):
    """Entries of (key, row). Each has a place, by which it is removed again."""

    def __init__(self) -> None:
        self._keys = Interned[K]()
        self._key_numbers = Column(np.int32)
        self._entry_rows = Column(np.int32)
        self._unused: list[int] = []

    def __bool__(self) -> bool:
        return len(self._unused) < len(self._entry_rows.values)

    def add(self, key: K, row: int) -> int:
        """The place of the entry, for `remove`."""
        if self._unused:
            place = self._unused.pop()
        else:
            place = len(self._entry_rows.values)
            self._key_numbers.reach(place + 1)
            self._entry_rows.reach(place + 1)
        self._key_numbers.values[place] = self._keys.take(key)
        self._entry_rows.values[place] = row
        return place

    def remove(self, place: int) -> None:
        self._keys.give(int(self._key_numbers.values[place]))
        self._key_numbers.values[place] = 0
        self._unused.append(place)

    def decided(
        self, name: Hashable, rule: Callable[[K], object], dtype: DTypeLike = np.bool_
    ) -> NDArray[Any]:
        """By number of the key; see `Interned.decided`."""
        return self._keys.decided(name, rule, dtype)

    def chosen(self, table: NDArray[Any]) -> Iterator[tuple[int, K]]:
        """The keys that an answer is not zero for, with their numbers."""
        for number in np.flatnonzero(table).tolist():
            key = self._keys.keys[number]
            if key is not None:
                yield number, key

    def forget(self) -> None:
        self._keys.forget()

    def rows(self, chosen: NDArray[np.bool_]) -> Numbers:
        """The row of each entry whose key is chosen."""
        found: Numbers = self._entry_rows.values.compress(chosen.take(self._key_numbers.values))
        return found

    def counts(self, chosen: NDArray[np.bool_], size: int) -> Amounts:
        """By row, how many entries have a key that is chosen."""
        found: Amounts = np.bincount(self.rows(chosen), minlength=size)
        return found

    def sums(self, worth: NDArray[np.int64], size: int) -> Amounts:
        """By row, what its entries are worth together; `worth` is by number."""
        each = worth.take(self._key_numbers.values)
        counted = each != 0
        found = np.bincount(
            self._entry_rows.values.compress(counted), each.compress(counted), minlength=size
        )
        return found.astype(np.int64)
