"""Which parts of Dovetail a ledger is used with, for those who leave out what nobody uses."""

from __future__ import annotations

from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.machines.stock import MACHINE_CLASS
from dovetail.ledger.views.holders import escaped

PARTS = {
    "classes": ("SELECT 1 FROM device_classes LIMIT 1", ()),
    "machines": (
        """SELECT 1 FROM resource_classes WHERE name LIKE ? ESCAPE '!'
           UNION ALL SELECT 1 FROM machine_queues LIMIT 1""",
        (f"{escaped(MACHINE_CLASS)}%",),
    ),
    "intents": ("SELECT 1 FROM intent_objects LIMIT 1", ()),
}
"""A statement each that finds a row if the part is used."""


def of_ledger(tx: Transaction) -> dict[str, bool]:
    return {
        part: tx.row(statement, parameters) is not None
        for part, (statement, parameters) in PARTS.items()
    }
