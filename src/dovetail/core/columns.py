"""Growing columns: NumPy arrays that get longer without being copied each time.

The finders keep fleets in them (the engine providers by row, devices and podfit nodes by row) and
decide for all rows at once. Growing by half, or by two, keeps the cost of appending in proportion
to what is appended, whatever is there already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Amounts = NDArray[np.int64]
Floats = NDArray[np.float64]


class Column:
    """One growing array: whoever owns the rows appends to it, or has it reach as many as there are.

    `values` and `size` are attributes, not properties: every vector operation begins with one.
    """

    __slots__ = ("_data", "_fill", "size", "values")

    def __init__(self, dtype: DTypeLike, fill: Any = 0) -> None:
        """`fill`: what entries hold that are only reached."""
        self._data: NDArray[Any] = np.empty(0, dtype)
        self._fill = fill
        self.size = 0
        self.values = self._data
        """The entries there are, without the room behind them."""

    def extend(self, items: NDArray[Any]) -> None:
        start = self.size
        self._make_room(start + len(items))
        self._data[start : self.size] = items

    def reach(self, size: int) -> None:
        """Have at least `size` entries."""
        start = self.size
        if size > start:
            self._make_room(size)
            self._data[start:size] = self._fill

    def assign(self, items: NDArray[Any]) -> None:
        """Have these entries, and no others."""
        self._data = self.values = items
        self.size = len(items)

    def copy(self) -> Column:
        twin = Column(self._data.dtype, self._fill)
        twin.extend(self.values)
        return twin

    def _make_room(self, size: int) -> None:
        if size > len(self._data):
            # A first fill fits exactly; what grows later grows by half.
            room = size if self.size == 0 else max(size, self.size * 3 // 2)
            data = np.empty(room, self._data.dtype)
            data[: self.size] = self.values
            self._data = data
        self.size = size
        self.values = self._data[:size]


def spans(lows: NDArray[np.intp], highs: NDArray[np.intp]) -> NDArray[np.intp]:
    """The numbers from each low up to its high, one after the other."""
    counts = highs - lows
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    found: NDArray[np.intp] = (lows - (ends - counts)).repeat(counts) + np.arange(total)
    return found


FIRST_TABLE = 16
"""Lines and width that a growing table begins with."""


def enlarged(table: Amounts, lines: int, width: int) -> Amounts:
    """The table itself if it is large enough; else twice as large, or more, with zeros added."""
    old_lines, old_width = table.shape
    if lines <= old_lines and width <= old_width:
        return table
    larger = np.zeros((_doubled(old_lines, lines), _doubled(old_width, width)), np.int64)
    larger[:old_lines, :old_width] = table
    return larger


def _doubled(size: int, needed: int) -> int:
    while size < needed:
        size *= 2
    return size
