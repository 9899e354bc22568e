"""Answers to requests with an idempotency key: who sends the same again gets the same again."""

from __future__ import annotations

import msgspec

from dovetail.ledger.database.protocol import Transaction

KEPT_SECONDS = 24 * 3600


class IdempotentAnswer(msgspec.Struct, frozen=True):
    digest: str
    """Of the request."""
    status: int
    body: str


def find(tx: Transaction, key: str, caller: str) -> IdempotentAnswer | None:
    row = tx.row(
        "SELECT digest, status, body FROM idempotency "
        "WHERE key = ? AND caller = ? AND created_at > ?",
        (key, caller, tx.now - KEPT_SECONDS),
    )
    return IdempotentAnswer(*row) if row else None


def keep(tx: Transaction, key: str, caller: str, answer: IdempotentAnswer) -> None:
    """What is too old goes on this occasion."""
    tx.run("DELETE FROM idempotency WHERE created_at <= ?", (tx.now - KEPT_SECONDS,))
    tx.run(
        "INSERT INTO idempotency (key, caller, digest, status, body, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (key, caller, answer.digest, answer.status, answer.body, tx.now),
    )
