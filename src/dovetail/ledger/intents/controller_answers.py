"""What placement controllers said last about each group, for those of which that counts."""

from __future__ import annotations

import msgspec

from dovetail.ledger.database.protocol import Transaction


class LastAnswer(msgspec.Struct, frozen=True):
    document: str
    """JSON. What it says is for those who wrote it."""
    answered_at: int


def keep(tx: Transaction, controller: str, group_path: str, document: str) -> None:
    """In place of what it said before."""
    tx.run(
        "INSERT INTO controller_answers (controller, group_path, document, answered_at) "
        "VALUES (?, ?, ?, ?) ON CONFLICT (controller, group_path) "
        "DO UPDATE SET document = excluded.document, answered_at = excluded.answered_at",
        (controller, group_path, document, tx.now),
    )


def find(tx: Transaction, controller: str, group_path: str) -> LastAnswer | None:
    row = tx.row(
        "SELECT document, answered_at FROM controller_answers "
        "WHERE controller = ? AND group_path = ?",
        (controller, group_path),
    )
    return LastAnswer(*row) if row else None


def drop(tx: Transaction, group_path: str) -> None:
    """Of a group that is gone."""
    tx.run("DELETE FROM controller_answers WHERE group_path = ?", (group_path,))
