"""Inventories of one resource class in columns: who has how much of it, and how much is free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Column, Mask, spans

RowNumbers = NDArray[np.int32]

NEVER = -(2**62)
"""Free units of an inventory that is no more: fits nothing."""

LARGEST_UNIT = 2**31 - 1
"""What a limit on one allocation can be at most."""

ALL_ENTRIES = slice(None)


class ClassInventories:
    """Who has how much of one resource class: an entry per inventory, ascending by row."""

    __slots__ = (
        "always_allowed",
        "capacity",
        "free",
        "max_unit",
        "min_unit",
        "plain",
        "rows",
        "step_size",
    )

    def __init__(self) -> None:
        self.rows = Column(np.int32)
        self.capacity = Column(np.int64)
        self.free = Column(np.int64)
        self.min_unit = Column(np.int32)
        self.max_unit = Column(np.int32)
        self.step_size = Column(np.int32)
        self.plain = True
        """No entry has a minimum or a step other than 1."""
        self.always_allowed = LARGEST_UNIT
        """Up to so much is within the maximum of every entry."""

    def columns(self) -> tuple[Column, ...]:
        return (
            self.rows,
            self.capacity,
            self.free,
            self.min_unit,
            self.max_unit,
            self.step_size,
        )

    def copy(self) -> ClassInventories:
        twin = ClassInventories()
        for mine, theirs in zip(self.columns(), twin.columns(), strict=True):
            theirs.extend(mine.values)
        twin.plain, twin.always_allowed = self.plain, self.always_allowed
        return twin

    def without_usage(self) -> ClassInventories:
        """The same with nothing in use, for reading only."""
        twin = ClassInventories()
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.free = Column(np.int64)
        twin.free.extend(np.where(self.free.values == NEVER, NEVER, self.capacity.values))
        return twin

    def extend(
        self,
        rows: RowNumbers,
        capacity: NDArray[np.int64],
        used: NDArray[np.int64],
        units: NDArray[np.int64],
    ) -> None:
        """Add entries whose rows are above all rows there are; `units` are min, max, step."""
        self.rows.extend(rows)
        self.capacity.extend(capacity)
        self.free.extend(capacity - used)
        for column, values in zip(
            (self.min_unit, self.max_unit, self.step_size), units, strict=True
        ):
            column.extend(values)
        self._look_at_units(self.rows.size - len(rows))

    def fitting(self, amount: int) -> RowNumbers:
        """Rows of which `amount` can be had at once, ascending."""
        found: RowNumbers = self.rows.values.compress(self.fits(amount))
        return found

    def fits(self, amount: int, entries: slice = ALL_ENTRIES) -> Mask:
        """For each entry, or each of some, whether `amount` can be had at once."""
        free = self.free.values[entries]
        if amount > LARGEST_UNIT:
            return np.zeros(len(free), np.bool_)
        fits: Mask = free >= amount
        if amount > self.always_allowed:
            fits &= self.max_unit.values[entries] >= amount
        if not self.plain:
            fits &= self.min_unit.values[entries] <= amount
            fits &= amount % self.step_size.values[entries] == 0
        return fits

    def fitting_among(self, rows: RowNumbers, amount: int) -> RowNumbers:
        """Those of a few rows, which are ascending, of which `amount` can be had at once."""
        if amount > LARGEST_UNIT or not self.rows.size:
            return rows[:0]
        if are_unbroken(rows):
            # One tree, mostly: its entries are side by side as well.
            entries = slice(*bounds_in(self.rows.values, rows))
            return self.rows.values[entries].compress(self.fits(amount, entries))
        at = np.minimum(self.rows.values.searchsorted(rows), self.rows.size - 1)
        fits: Mask = self.rows.values.take(at) == rows
        fits &= self.free.values.take(at) >= amount
        if amount > self.always_allowed:
            fits &= self.max_unit.values.take(at) >= amount
        if not self.plain:
            fits &= self.min_unit.values.take(at) <= amount
            fits &= amount % self.step_size.values.take(at) == 0
        return rows.compress(fits)

    def entry(self, row: int) -> int | None:
        """Where the entry of a row is."""
        # Of the same type: for any other all rows would be copied first.
        at = int(self.rows.values.searchsorted(np.int32(row)))
        if at < self.rows.size and self.rows.values[at] == row:
            return at
        return None

    def headroom(self, rows: RowNumbers) -> NDArray[np.int64]:
        """The most that can be had in one allocation of each of the rows, which all have some."""
        at = self.rows.values.searchsorted(rows)
        found: NDArray[np.int64] = np.minimum(self.free.values[at], self.max_unit.values[at])
        return found

    def headroom_of_all(self) -> NDArray[np.int64]:
        """The same for every entry."""
        found: NDArray[np.int64] = np.minimum(self.free.values, self.max_unit.values)
        return found

    def use(self, rows: RowNumbers, used: NDArray[np.int64]) -> None:
        """So much is in use of rows; those that have none of the class are passed over."""
        at = np.minimum(self.rows.values.searchsorted(rows), self.rows.size - 1)
        there = self.rows.values.take(at) == rows
        at = at.compress(there)
        self.free.values[at] = self.capacity.values.take(at) - used.compress(there)

    def use_one(self, row: int, used: int) -> None:
        """The same of one row."""
        at = self.entry(row)
        if at is not None:
            self.free.values[at] = self.capacity.values[at] - used

    def bury(self, firsts: RowNumbers, lasts: RowNumbers) -> None:
        """Make the entries of rows from each first to its last (exclusive) fit nothing any more."""
        self.free.values[spans(*self.rows.values.searchsorted((firsts, lasts)))] = NEVER

    def compact(self, places: RowNumbers) -> None:
        """Leave out rows that are no more: `places` has the new number of each row, or -1."""
        rows = places.take(self.rows.values)
        alive = rows >= 0
        for column in self.columns():
            column.assign(column.values.compress(alive))
        self.rows.assign(rows.compress(alive))
        self.plain, self.always_allowed = True, LARGEST_UNIT
        self._look_at_units(0)

    def _look_at_units(self, first: int) -> None:
        """Find out what is common to all entries, given that of those before `first`."""
        least, step = self.min_unit.values[first:], self.step_size.values[first:]
        self.plain = self.plain and bool((least <= 1).all() and (step == 1).all())
        most = self.max_unit.values[first:]
        self.always_allowed = int(most.min(initial=self.always_allowed))


def are_unbroken(rows: RowNumbers) -> bool:
    """Whether rows, which are ascending, are all there are between the first and the last."""
    return len(rows) > 0 and int(rows[-1]) - int(rows[0]) == len(rows) - 1


def bounds_in(known: RowNumbers, rows: RowNumbers) -> tuple[int, int]:
    """Where unbroken rows begin and end among those that are known; both are ascending."""
    low = int(known.searchsorted(rows[0]))
    return low, int(known.searchsorted(rows[-1], side="right"))
