"""Inventories: how much of each resource class a provider has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import BadCapacity, InventoryInUse, InventoryNotFound, StaleGeneration
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import providers, resource_classes
from dovetail.ledger.database.loading import marks
from dovetail.ledger.database.protocol import Change, Transaction

COLUMNS = "total, reserved, min_unit, max_unit, step_size, allocation_ratio"


class RecordedInventory(msgspec.Struct, frozen=True):
    """An inventory as recorded, with what is taken of it."""

    inventory: Inventory
    used: int
    changed_at: int


def of_provider(tx: Transaction, provider: Provider) -> dict[str, RecordedInventory]:
    rows = tx.rows(
        f"""SELECT c.name, i.used, i.changed_at, {COLUMNS}
            FROM inventories i JOIN resource_classes c ON c.id = i.class_id
            WHERE i.provider_id = ? ORDER BY i.class_id""",  # noqa: S608
        (provider.id,),
    )
    return {name: RecordedInventory(of_row(rest), used, at) for name, used, at, *rest in rows}


def of_row(row: Sequence[Any]) -> Inventory:
    """From the values of COLUMNS."""
    total, reserved, min_unit, max_unit, step_size, ratio = row
    return Inventory(
        total=total,
        reserved=reserved,
        min_unit=min_unit,
        max_unit=max_unit,
        step_size=step_size,
        allocation_ratio=ratio,
    )


def refuse_bad_capacity(
    provider: Provider, inventories: Mapping[str, Inventory], *, equal_is_bad: bool
) -> None:
    """Refuse to reserve more than there is (and, for older clients, all there is)."""
    for name, inventory in inventories.items():
        if inventory.capacity < 0 or (equal_is_bad and inventory.capacity == 0):
            raise BadCapacity(name, provider.uuid, equal_is_bad=equal_is_bad)


def add(tx: Transaction, provider: Provider, name: str, inventory: Inventory) -> Provider:
    """One class that the provider does not have yet."""
    class_id = resource_classes.get_id(tx, name)
    if name in of_provider(tx, provider):
        raise StaleGeneration(f"Inventory for '{name}' is there already")
    insert(tx, provider, class_id, inventory)
    return next_generation(tx, provider)


def change(tx: Transaction, provider: Provider, name: str, inventory: Inventory) -> Provider:
    """One class that the provider has; it may shrink below what is in use."""
    if name not in of_provider(tx, provider):
        raise InventoryNotFound(name)
    update(tx, provider, resource_classes.get_id(tx, name), inventory)
    return next_generation(tx, provider)


def remove(tx: Transaction, provider: Provider, name: str) -> Provider:
    class_id = resource_classes.get_id(tx, name)
    if name not in of_provider(tx, provider):
        raise InventoryNotFound(name)
    erase(tx, provider, {name: class_id})
    return next_generation(tx, provider)


def assign(tx: Transaction, provider: Provider, inventories: Mapping[str, Inventory]) -> Provider:
    """Make these all the inventories of the provider."""
    new_ids = resource_classes.ids(tx, inventories)
    now = of_provider(tx, provider)
    gone = [name for name in now if name not in inventories]
    if gone:
        erase(tx, provider, resource_classes.ids(tx, gone))
    for name, inventory in inventories.items():
        write = update if name in now else insert
        write(tx, provider, new_ids[name], inventory)
    return next_generation(tx, provider)


def next_generation(tx: Transaction, provider: Provider) -> Provider:
    tx.changed(Change.TREE, provider.root_id)
    return providers.bump(tx, provider)


def insert(tx: Transaction, provider: Provider, class_id: int, inventory: Inventory) -> None:
    tx.run(
        f"""INSERT INTO inventories (provider_id, class_id, used, changed_at, {COLUMNS})
            VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?)""",  # noqa: S608
        (provider.id, class_id, tx.now, *values(inventory)),
    )


def update(tx: Transaction, provider: Provider, class_id: int, inventory: Inventory) -> None:
    tx.run(
        """UPDATE inventories SET changed_at = ?, total = ?, reserved = ?, min_unit = ?,
             max_unit = ?, step_size = ?, allocation_ratio = ?
           WHERE provider_id = ? AND class_id = ?""",
        (tx.now, *values(inventory), provider.id, class_id),
    )


def erase(tx: Transaction, provider: Provider, class_ids: Mapping[str, int]) -> None:
    ids = list(class_ids.values())
    in_use = tx.rows(
        f"""SELECT class_id FROM inventories
            WHERE provider_id = ? AND used > 0 AND class_id IN ({marks(len(ids))})
            ORDER BY class_id""",  # noqa: S608
        (provider.id, *ids),
    )
    if in_use:
        names = {class_id: name for name, class_id in class_ids.items()}
        raise InventoryInUse([names[id_] for (id_,) in in_use], provider.uuid)
    tx.run(
        f"DELETE FROM inventories WHERE provider_id = ? AND class_id IN ({marks(len(ids))})",  # noqa: S608
        (provider.id, *ids),
    )


def values(inventory: Inventory) -> tuple[int, int, int, int, int, float]:
    return (
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
    )
