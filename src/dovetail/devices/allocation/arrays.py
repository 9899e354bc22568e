"""Tables of whole numbers that grow as they are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

SPARE = 16
"""What a table begins with, either way."""


def enlarged(table: Ints, lines: int, width: int) -> Ints:
    """The table itself if it is large enough; else twice as large, or more, with zeros added."""
    old_lines, old_width = table.shape
    if lines <= old_lines and width <= old_width:
        return table
    larger = np.zeros((_grown(old_lines, lines), _grown(old_width, width)), np.int64)
    larger[:old_lines, :old_width] = table
    return larger


def _grown(size: int, needed: int) -> int:
    while size < needed:
        size *= 2
    return size
