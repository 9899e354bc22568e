"""Leases: work that one process of many does at a time, by a row that its holder keeps renewing.

`service/leases` decides when to take one over. Safety rests on `check` alone: whoever writes as the
holder has it checked in the same transaction, so one who lost the lease without noticing (a long
pause, a clock that stood still) writes nothing any more.
"""

from __future__ import annotations

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.ledger.database.protocol import Transaction


class LeaseLost(DovetailError):
    """Somebody else has the lease."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the lease {name!r} is held by another process")


class LeaseRow(msgspec.Struct, frozen=True):
    holder: str
    until: int
    """Unix milliseconds by the holder's clock, for people; others only see that it changes."""


def find(tx: Transaction, name: str) -> LeaseRow | None:
    row = tx.row("SELECT holder, until FROM leases WHERE name = ?", (name,))
    return LeaseRow(*row) if row else None


def take(tx: Transaction, name: str, wanted: LeaseRow, expired: LeaseRow | None = None) -> bool:
    """Take the lease, or renew it, unless somebody else has it who has not `expired`."""
    row = tx.row(
        f"SELECT holder, until FROM leases WHERE name = ?{tx.for_update}",  # noqa: S608
        (name,),
    )
    if row is None:
        tx.run(
            "INSERT INTO leases (name, holder, until) VALUES (?, ?, ?)",
            (name, wanted.holder, wanted.until),
        )
        return True
    now = LeaseRow(*row)
    if now.holder != wanted.holder and now != expired:
        return False
    tx.run(
        "UPDATE leases SET holder = ?, until = ? WHERE name = ?",
        (wanted.holder, wanted.until, name),
    )
    return True


def check(tx: Transaction, name: str, holder: str) -> None:
    """Raises LeaseLost. Until the transaction ends, nobody takes the lease over."""
    share = " FOR SHARE" if tx.for_update else ""
    row = tx.row(f"SELECT holder FROM leases WHERE name = ?{share}", (name,))  # noqa: S608
    if row is None or row[0] != holder:
        raise LeaseLost(name)


def release(tx: Transaction, name: str, holder: str) -> None:
    tx.run("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))
