"""Tables: rows of the ledger in the form in which the snapshot takes them in.

A few trees are handed over as plain tuples, as the database's driver returned them. A fleet has
millions of rows: it is handed over in columns, made chunk by chunk while it is read, so that no
object per row outlives its chunk. The snapshot turns rows into columns first, so both are taken in
by the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from dovetail.core.columns import Column

ProviderRow = tuple[int, str, int | None, int]
"""id, uuid, id of the parent, id of the root"""

InventoryRow = tuple[int, int, int, int, int, int, int, float, int]
"""provider id, class id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used"""

NO_PARENT = -1
"""Instead of the parent's id, in columns."""


class Tables(msgspec.Struct):
    """Whole trees: every provider of each root named."""

    providers: list[ProviderRow]
    inventories: list[InventoryRow]
    traits: list[tuple[int, int]]
    """provider id, trait id"""
    aggregates: list[tuple[int, str]]
    """provider id, aggregate uuid"""
    attributes: list[tuple[int, str, str]] = []
    """provider id, key, value"""


Arrays = tuple[NDArray[Any], ...]

PROVIDER_TYPES: Sequence[DTypeLike] = (np.int64, "S36", np.int64, np.int64)
INVENTORY_TYPES: Sequence[DTypeLike] = (*(np.int64,) * 7, np.float64, np.int64)
TRAIT_TYPES: Sequence[DTypeLike] = (np.int64, np.int64)


class TableColumns(msgspec.Struct):
    """The same in columns, those of the rows above in their order."""

    providers: Arrays
    """A parent that there is not is NO_PARENT."""
    inventories: Arrays
    traits: Arrays
    aggregates: list[tuple[int, str]]
    attributes: list[tuple[int, str, str]]

    def clear(self) -> None:
        """Forget all rows, once they were taken in: a fleet's take much memory."""
        self.providers = self.inventories = self.traits = ()
        self.aggregates, self.attributes = [], []


def columns_of(tables: Tables) -> TableColumns:
    providers = [
        (id_, uuid, NO_PARENT if parent is None else parent, root)
        for id_, uuid, parent, root in tables.providers
    ]
    return TableColumns(
        providers=table_columns([providers], PROVIDER_TYPES),
        inventories=table_columns([tables.inventories], INVENTORY_TYPES),
        traits=table_columns([tables.traits], TRAIT_TYPES),
        aggregates=tables.aggregates,
        attributes=tables.attributes,
    )


def table_columns(
    chunks: Iterable[Sequence[tuple[Any, ...]]], types: Sequence[DTypeLike]
) -> Arrays:
    """The columns of rows that come in chunks; none of them holds a None."""
    columns = [Column(each) for each in types]
    for rows in chunks:
        for at, column in enumerate(columns):
            column.extend(_values(rows, at, column.values.dtype))
    return tuple(column.values for column in columns)


def _values(rows: Sequence[tuple[Any, ...]], at: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    values = map(itemgetter(at), rows)
    if dtype.kind == "S":
        return np.array(list(values), dtype)
    # Without a list in between: that takes half the time.
    return np.fromiter(values, dtype, len(rows))


class Names(msgspec.Struct):
    """All names the ledger knows, by id."""

    classes: dict[int, str]
    traits: dict[int, str]
