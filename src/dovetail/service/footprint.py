"""How much memory a snapshot's columns take."""

from __future__ import annotations

from dovetail.core.columns import Column
from dovetail.engine import Snapshot


def columns_bytes(snapshot: Snapshot) -> int:
    own = [value for value in vars(snapshot).values() if isinstance(value, Column)]
    stocks = [column for stock in snapshot.stocks.values() for column in stock.columns()]
    return sum(column.values.nbytes for column in (*own, *stocks))
