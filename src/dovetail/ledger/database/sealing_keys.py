"""Sealing keys: made once for all servers of a ledger, by whichever needs one first.

They are in no backup: whoever restores one has everybody sign in again.
"""

from __future__ import annotations

import secrets

from dovetail.ledger.database.protocol import Transaction

KEY_BYTES = 32


def find(tx: Transaction, name: str) -> bytes | None:
    row = tx.row("SELECT key_hex FROM sealing_keys WHERE name = ?", (name,))
    return bytes.fromhex(row[0]) if row else None


def ensure(tx: Transaction, name: str) -> bytes:
    """The key of this name, made if there is none."""
    tx.run(
        """INSERT INTO sealing_keys (name, key_hex, created_at) VALUES (?, ?, ?)
           ON CONFLICT (name) DO NOTHING""",
        (name, secrets.token_hex(KEY_BYTES), tx.now),
    )
    found = find(tx, name)
    assert found is not None
    return found
