"""Transactions on PostgreSQL: begun with their timeouts, ended whatever happens in them.

`postgres` runs every operation in one. A commit that was not answered is told apart from one that
was refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from dovetail.ledger.database.connections import Driver
from dovetail.ledger.database.protocol import LedgerBusy, OutcomeUnknown
from dovetail.ledger.database.settings import LedgerSettings

OPEN_TRANSACTION = (
    psycopg.pq.TransactionStatus.INTRANS,
    psycopg.pq.TransactionStatus.INERROR,
)
NO_TIMEOUTS = (
    b"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "
    b"SET LOCAL idle_in_transaction_session_timeout = 0"
)


def timeouts(settings: LedgerSettings) -> bytes:
    """For the transaction that was just begun: a session's would outlive it, in a pool of others.

    The last is for a server that does not hear of us any more: it lets go of our locks.
    """
    return "; ".join(
        f"SET LOCAL {name} = {int(seconds * 1000)}"
        for name, seconds in (
            ("statement_timeout", settings.statement_seconds),
            ("lock_timeout", settings.lock_seconds),
            ("idle_in_transaction_session_timeout", settings.answer_seconds),
        )
    ).encode()


@contextmanager
def transaction(driver: Driver, begin: bytes) -> Iterator[None]:
    """Begun in one round trip; however the block leaves it, the connection has none after it."""
    try:
        driver.execute(begin, prepare=False)
        yield
    finally:
        roll_back(driver)


def roll_back(driver: Driver) -> None:
    if driver.info.transaction_status in OPEN_TRANSACTION:
        # Where even this fails the connection is broken, and what led here is raised already.
        with suppress(psycopg.Error):
            driver.execute("ROLLBACK", prepare=False)


def commit(driver: Driver) -> None:
    """Raises OutcomeUnknown where the server did not say what became of it."""
    try:
        done = driver.execute("COMMIT", prepare=False)
    except psycopg.Error as error:
        if error.sqlstate is not None and not driver.closed:
            raise
        raise OutcomeUnknown(f"the connection broke in a commit: {error}") from error
    if done.statusmessage != "COMMIT":
        raise LedgerBusy("the database rolled the transaction back")
