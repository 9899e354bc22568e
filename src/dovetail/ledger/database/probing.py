"""Whether a ledger takes writes: `Ledger.check`, for readiness probes, asks what is here.

A full disk or a file that became read-only shows when something is written, not before. So the end
of the last write is kept in mind; if that failed, the probe writes, and is the one that finds out
when the fault is over.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from dovetail.ledger.database import leases
from dovetail.ledger.database.leases import LeaseRow
from dovetail.ledger.database.protocol import LedgerBusy, RowsContended, Transaction

PROBE = "probe of readiness"


class FailedWrites:
    """How the last write ended."""

    def __init__(self) -> None:
        self.was_last = False
        """Whether it failed because the ledger could not be used."""

    def watch(self, written: Future[Any]) -> None:
        written.add_done_callback(self._note)

    def _note(self, written: Future[Any]) -> None:
        if written.cancelled():
            return
        error = written.exception()
        if error is None:
            self.was_last = False
        elif isinstance(error, LedgerBusy) and not isinstance(error, RowsContended):
            self.was_last = True


def probe(tx: Transaction) -> None:
    """Write a row and remove it: a commit like any other, which leaves nothing behind."""
    leases.take(tx, PROBE, LeaseRow(PROBE, tx.now))
    leases.release(tx, PROBE, PROBE)
