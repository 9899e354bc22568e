"""Idempotency keys: whoever sends the same request with the same key again gets the same answer.

The answer is kept in the transaction of what it is about: either both are there or neither,
whatever crashes. Of two with the same key at once, the second finds what the first has written.
"""

from __future__ import annotations

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.ledger.database.protocol import Transaction

KEPT_SECONDS = 24 * 3600


class KeyReused(DovetailError):
    """An idempotency key that came with another request before."""


class IdempotentAnswer(msgspec.Struct, frozen=True):
    digest: str
    """Of the request."""
    status: int
    body: str


class IdempotencyKey(msgspec.Struct, frozen=True):
    """The key of a request, and what it is the key of."""

    key: str
    caller: str
    digest: str

    def kept(self, tx: Transaction) -> IdempotentAnswer | None:
        """What was answered before. Raises KeyReused."""
        row = tx.row(
            "SELECT digest, status, body FROM idempotency "
            "WHERE key = ? AND caller = ? AND created_at > ?",
            (self.key, self.caller, tx.now - KEPT_SECONDS),
        )
        found = IdempotentAnswer(*row) if row else None
        if found is not None and found.digest != self.digest:
            raise KeyReused(f"the idempotency key {self.key!r} was used for another request")
        return found

    def keep(self, tx: Transaction, status: int, body: str) -> IdempotentAnswer:
        """What is too old goes on this occasion."""
        tx.run("DELETE FROM idempotency WHERE created_at <= ?", (tx.now - KEPT_SECONDS,))
        tx.run(
            "INSERT INTO idempotency (key, caller, digest, status, body, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (self.key, self.caller, self.digest, status, body, tx.now),
        )
        return IdempotentAnswer(self.digest, status, body)
