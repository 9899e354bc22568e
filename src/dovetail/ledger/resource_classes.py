"""Resource classes: the kinds of things that providers have amounts of."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dovetail.core.errors import ClassExists, ClassInUse, ClassNotFound, StandardName
from dovetail.ledger.database.loading import marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.standards import CUSTOM_PREFIX, FIRST_CUSTOM_CLASS_ID


class ResourceClass(msgspec.Struct, frozen=True):
    id: int
    name: str
    changed_at: int


def listing(tx: Transaction) -> list[ResourceClass]:
    rows = tx.rows("SELECT id, name, changed_at FROM resource_classes ORDER BY id")
    return [ResourceClass(*row) for row in rows]


def find(tx: Transaction, name: str) -> ResourceClass | None:
    row = tx.row("SELECT id, name, changed_at FROM resource_classes WHERE name = ?", (name,))
    return ResourceClass(*row) if row else None


def get(tx: Transaction, name: str) -> ResourceClass:
    found = find(tx, name)
    if found is None:
        raise ClassNotFound(name)
    return found


def get_id(tx: Transaction, name: str) -> int:
    return get(tx, name).id


def ids(tx: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Ids by name; every name has to exist."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    found: dict[str, int] = dict(
        tx.rows(
            f"SELECT name, id FROM resource_classes WHERE name IN ({marks(len(wanted))})",  # noqa: S608
            wanted,
        )
    )
    for name in wanted:
        if name not in found:
            raise ClassNotFound(name)
    return found


def create(tx: Transaction, name: str) -> ResourceClass:
    if find(tx, name):
        raise ClassExists(name)
    tx.run(
        """INSERT INTO resource_classes (id, name, changed_at)
           SELECT CASE WHEN max(id) < ? THEN ? ELSE max(id) + 1 END, ?, ? FROM resource_classes""",
        (FIRST_CUSTOM_CLASS_ID, FIRST_CUSTOM_CLASS_ID, name, tx.now),
    )
    tx.changed(Change.NAMES)
    return get(tx, name)


def ensure(tx: Transaction, name: str) -> bool:
    """Make the class unless it is there; True if it was made."""
    if find(tx, name):
        return False
    create(tx, name)
    return True


def rename(tx: Transaction, name: str, new_name: str) -> ResourceClass:
    found = get(tx, name)
    if not name.startswith(CUSTOM_PREFIX):
        raise StandardName(f"Cannot update standard resource class {name}")
    if new_name != name and find(tx, new_name):
        raise ClassExists(new_name)
    tx.run(
        "UPDATE resource_classes SET name = ?, changed_at = ? WHERE id = ?",
        (new_name, tx.now, found.id),
    )
    tx.changed(Change.NAMES)
    return get(tx, new_name)


def delete(tx: Transaction, name: str) -> None:
    found = get(tx, name)
    if not name.startswith(CUSTOM_PREFIX):
        raise StandardName(f"Cannot delete standard resource class {name}.")
    if tx.row("SELECT 1 FROM inventories WHERE class_id = ? LIMIT 1", (found.id,)):
        raise ClassInUse(name)
    tx.run("DELETE FROM resource_classes WHERE id = ?", (found.id,))
    tx.changed(Change.NAMES)
