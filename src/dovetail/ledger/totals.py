"""Totals of the fleet: each resource class over all providers, or over those of one tree."""

from __future__ import annotations

import msgspec

from dovetail.core.inventory import Inventory
from dovetail.ledger import inventories, provider_names
from dovetail.ledger.database.protocol import Transaction

STOCK = """
    SELECT k.name, count(*), i.used, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
           i.allocation_ratio
    FROM inventories i
    JOIN resource_classes k ON k.id = i.class_id
    JOIN providers p ON p.id = i.provider_id
    {where}
    GROUP BY k.id, k.name, i.used, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
             i.allocation_ratio
    ORDER BY k.id"""


class ClassTotal(msgspec.Struct):
    """One resource class, summed up."""

    providers: int = 0
    capacity: int = 0
    used: int = 0
    free: int = 0
    """Where more is used than there is, nothing is free: it takes nothing from the others."""
    largest: int = 0
    """The most that one provider could give to one claim now."""


def by_class(tx: Transaction, tree: str | None = None) -> dict[str, ClassTotal]:
    """`tree` is the name or UUID of any provider in it."""
    where = "" if tree is None else "WHERE p.root_id = ?"
    parameters = () if tree is None else (provider_names.get(tx, tree).root_id,)
    totals: dict[str, ClassTotal] = {}
    for name, count, used, *columns in tx.rows(STOCK.format(where=where), parameters):
        total = totals.setdefault(name, ClassTotal())
        inventory = inventories.of_row(columns)
        free = max(inventory.capacity - used, 0)
        total.providers += count
        total.capacity += inventory.capacity * count
        total.used += used * count
        total.free += free * count
        total.largest = max(total.largest, largest_claim(inventory, free))
    return totals


def largest_claim(inventory: Inventory, free: int) -> int:
    """The largest amount of which one allocation may be, with so much free."""
    most = min(free, inventory.max_unit)
    most -= most % inventory.step_size
    return most if most >= inventory.min_unit else 0
