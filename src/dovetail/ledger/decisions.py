"""The record of decisions, bounded: `service/decisions` writes one with each claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Row, Transaction

KEPT = 10_000


def record(tx: Transaction, consumer: str, document: str) -> int:
    """Note a decision and forget one that is too old."""
    row = tx.row(
        "INSERT INTO decisions (decided_at, consumer, document) VALUES (?, ?, ?) RETURNING id",
        (tx.now, consumer, document),
    )
    assert row
    number: int = row[0]
    tx.run("DELETE FROM decisions WHERE id <= ?", (number - KEPT,))
    return number


def listing(
    tx: Transaction, *, limit: int, before: int | None = None, consumer: str | None = None
) -> list[Row]:
    """id, decided at, consumer, document; newest first."""
    conditions, parameters = ["1 = 1"], list[Any]()
    if before is not None:
        conditions.append("id < ?")
        parameters.append(before)
    if consumer is not None:
        conditions.append("consumer = ?")
        parameters.append(consumer)
    return tx.rows(
        f"""SELECT id, decided_at, consumer, document FROM decisions
            WHERE {" AND ".join(conditions)} ORDER BY id DESC LIMIT ?""",  # noqa: S608
        (*parameters, limit),
    )


def of_consumers(tx: Transaction, consumers: Sequence[str]) -> list[tuple[str, str]]:
    """Consumer and document of all decisions about these, newest first."""
    found: list[tuple[str, str]] = []
    for some in chunks(consumers):
        rows = tx.rows(
            f"""SELECT consumer, document FROM decisions
                WHERE consumer IN ({marks(len(some))}) ORDER BY id DESC""",  # noqa: S608
            some,
        )
        found += [(consumer, document) for consumer, document in rows]
    return found
