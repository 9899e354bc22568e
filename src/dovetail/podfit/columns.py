"""Arrays with an entry per row that grow as rows come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Amounts = NDArray[np.int64]
Floats = NDArray[np.float64]


class Column:
    """One array; growing costs what is new, not what is there."""

    __slots__ = ("_data", "_fill", "values")

    def __init__(self, dtype: DTypeLike, fill: Any = 0) -> None:
        self._data: NDArray[Any] = np.empty(0, dtype)
        self._fill = fill
        self.values = self._data
        """As many as were asked for, without the room behind them."""

    def reach(self, size: int) -> None:
        """Have at least `size` entries."""
        if size <= len(self.values):
            return
        if size > len(self._data):
            room = np.full(max(size, len(self._data) * 3 // 2), self._fill, self._data.dtype)
            room[: len(self.values)] = self.values
            self._data = room
        self.values = self._data[:size]
