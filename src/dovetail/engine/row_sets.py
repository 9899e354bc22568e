"""Numbers of the sets that rows have: traits, aggregates or attributes, many rows at a time.

The snapshot calls it with all members of all rows that it takes in. Rows with equally many members
are compared in one pass, so a set is interned once per distinct one, not once per row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.inventories import RowNumbers

Numbers = NDArray[np.int64]


def set_numbers(
    rows: Numbers, members: Numbers, count: int, number_of: Callable[[list[int]], int]
) -> RowNumbers:
    """For each of `count` rows the number of its set, 0 if it has no members.

    The pairs of row and member, each once, come in any order; `number_of` interns a set, whose
    members it is given ascending.
    """
    found: RowNumbers = np.zeros(count, np.int32)
    order = np.lexsort((members, rows))
    rows, members = rows.take(order), members.take(order)
    sizes = np.bincount(rows, minlength=count)
    firsts = sizes.cumsum() - sizes
    for size in np.unique(sizes.compress(sizes > 0)).tolist():
        mine = np.flatnonzero(sizes == size)
        table = members.take(firsts.take(mine)[:, None] + np.arange(size))
        distinct, which = distinct_lines(table)
        numbers = [number_of(line) for line in distinct.tolist()]
        found[mine] = np.array(numbers, np.int32).take(which)
    return found


def distinct_lines(table: Numbers) -> tuple[Numbers, NDArray[np.intp]]:
    """The lines of a table that differ, and for each line which of them it is."""
    if table.shape[1] == 1:
        values, which = np.unique(table[:, 0], return_inverse=True)
        return values[:, None], which
    # As bytes: what comes first does not matter, and lines compare in one go.
    lines = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))
    _, samples, which = np.unique(lines[:, 0], return_index=True, return_inverse=True)
    return table.take(samples, axis=0), which
