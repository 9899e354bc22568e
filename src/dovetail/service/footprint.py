"""How much memory a snapshot's columns take."""

from __future__ import annotations

from dovetail.core.columns import Column
from dovetail.engine import Snapshot


def columns_bytes(snapshot: Snapshot) -> int:
    own = [value for value in vars(snapshot).values() if isinstance(value, Column)]
    of_classes = [
        column for inventories in snapshot.inventories.values() for column in inventories.columns()
    ]
    return sum(column.values.nbytes for column in (*own, *of_classes))
