"""Bulk reads of trees, usages and names, as the tables that the engine's snapshot takes in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

from dovetail.core.tables import (
    INVENTORY_TYPES,
    NO_PARENT,
    PROVIDER_TYPES,
    TRAIT_TYPES,
    Names,
    TableColumns,
    Tables,
    table_columns,
)
from dovetail.ledger.database.protocol import Transaction

T = TypeVar("T")

CHUNK = 500
"""Ids per IN list: well below the databases' limits on parameters."""

PROVIDERS = "SELECT id, uuid, parent_id, root_id FROM providers {where}"
ALL_PROVIDERS = f"SELECT id, uuid, coalesce(parent_id, {NO_PARENT}), root_id FROM providers"  # noqa: S608
INVENTORIES = """
    SELECT i.provider_id, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
           i.allocation_ratio, i.used
    FROM inventories i {join} {where}"""
USAGE = """
    SELECT i.provider_id, i.class_id, i.used FROM providers p
    JOIN inventories i ON i.provider_id = p.id WHERE p.root_id IN ({roots})"""
TRAITS = "SELECT t.provider_id, t.trait_id FROM provider_traits t {join} {where}"
AGGREGATES = "SELECT a.provider_id, a.aggregate FROM provider_aggregates a {join} {where}"
ATTRIBUTES = "SELECT v.provider_id, v.key, v.value FROM provider_attributes v {join} {where}"


def marks(count: int) -> str:
    """Parameter marks for an IN list; an empty list matches nothing."""
    return "NULL" if count == 0 else ",".join("?" * count)


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def forest(tx: Transaction) -> TableColumns:
    """Every tree there is, turned into columns while it is read."""
    return TableColumns(
        providers=table_columns(tx.stream(ALL_PROVIDERS), PROVIDER_TYPES),
        inventories=table_columns(
            tx.stream(INVENTORIES.format(join="", where="")), INVENTORY_TYPES
        ),
        traits=table_columns(tx.stream(TRAITS.format(join="", where="")), TRAIT_TYPES),
        aggregates=tx.rows(AGGREGATES.format(join="", where="")),
        attributes=tx.rows(ATTRIBUTES.format(join="", where="")),
    )


def trees(tx: Transaction, roots: Sequence[int]) -> Tables:
    """The trees of these roots; a root that is gone simply has no rows."""
    tables = Tables(providers=[], inventories=[], traits=[], aggregates=[])
    for some in chunks(sorted(roots)):
        among = f"WHERE root_id IN ({marks(len(some))})"
        tables.providers += tx.rows(PROVIDERS.format(where=among), some)
        for statement, rows, alias in (
            (INVENTORIES, tables.inventories, "i"),
            (TRAITS, tables.traits, "t"),
            (AGGREGATES, tables.aggregates, "a"),
            (ATTRIBUTES, tables.attributes, "v"),
        ):
            join = f"JOIN providers p ON p.id = {alias}.provider_id"
            rows.extend(tx.rows(statement.format(join=join, where=among), some))
    return tables


def usage(tx: Transaction, roots: Sequence[int]) -> list[tuple[int, int, int]]:
    """provider id, class id and use of everything in these trees."""
    found: list[tuple[int, int, int]] = []
    for some in chunks(sorted(roots)):
        found += tx.rows(
            USAGE.format(roots=marks(len(some))),
            some,
        )
    return found


def definitions(tx: Transaction) -> dict[str, str]:
    """The documents that define resource classes, by name."""
    return dict(tx.rows("SELECT name, document FROM device_classes"))


def names(tx: Transaction) -> Names:
    return Names(
        classes=dict(tx.rows("SELECT id, name FROM resource_classes")),
        traits=dict(tx.rows("SELECT id, name FROM traits")),
    )
