"""Device classes: what devices each selects, as the document that says so."""

from __future__ import annotations

import msgspec

from dovetail.core.errors import AlreadyExists, NotFound
from dovetail.ledger.database.protocol import Change, Transaction

COLUMNS = "name, document, created_at, changed_at"


class Definition(msgspec.Struct, frozen=True):
    name: str
    document: str
    """JSON. What it says is for those who read it."""
    created_at: int
    changed_at: int


class DefinitionNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"No resource class {name!r} is defined.")


class DefinitionDiffers(AlreadyExists):
    """What a class selects does not change: whoever holds devices of it counts on that."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Resource class {name!r} is defined otherwise, and definitions do not change: "
            "delete it first, or choose another name."
        )


def listing(tx: Transaction) -> list[Definition]:
    rows = tx.rows(f"SELECT {COLUMNS} FROM device_classes ORDER BY name")  # noqa: S608
    return [Definition(*row) for row in rows]


def find(tx: Transaction, name: str) -> Definition | None:
    row = tx.row(f"SELECT {COLUMNS} FROM device_classes WHERE name = ?", (name,))  # noqa: S608
    return Definition(*row) if row else None


def get(tx: Transaction, name: str) -> Definition:
    found = find(tx, name)
    if found is None:
        raise DefinitionNotFound(name)
    return found


def define(tx: Transaction, name: str, document: str) -> tuple[Definition, bool]:
    """The definition, and whether it had to be made; another one of that name is refused."""
    found = find(tx, name)
    if found is None:
        replace(tx, name, document)
        return get(tx, name), True
    if found.document != document:
        raise DefinitionDiffers(name)
    return found, False


def replace(tx: Transaction, name: str, document: str) -> bool:
    """Whatever was defined before; False if it was just that."""
    found = find(tx, name)
    if found is not None and found.document == document:
        return False
    if found is not None:
        tx.run(
            "UPDATE device_classes SET document = ?, changed_at = ? WHERE name = ?",
            (document, tx.now, name),
        )
    else:
        tx.run(
            f"INSERT INTO device_classes ({COLUMNS}) VALUES (?, ?, ?, ?)",  # noqa: S608
            (name, document, tx.now, tx.now),
        )
    tx.changed(Change.CLASSES)
    return True


def drop(tx: Transaction, name: str) -> bool:
    """False if there is none."""
    dropped = tx.run("DELETE FROM device_classes WHERE name = ?", (name,)) > 0
    if dropped:
        tx.changed(Change.CLASSES)
    return dropped
