"""How much memory a snapshot's columns take."""

from __future__ import annotations

from dovetail.engine import Snapshot
from dovetail.engine.columns import Column


def columns_bytes(snapshot: Snapshot) -> int:
    own = [value for value in vars(snapshot).values() if isinstance(value, Column)]
    stocks = [column for stock in snapshot.stocks.values() for column in stock.columns()]
    return sum(column.values.nbytes for column in (*own, *stocks))
