"""The ledger on PostgreSQL: for replicas.

Every write is a transaction of its own that locks the providers it touches in the order of their
ids; PostgreSQL gathers their commits itself. A reader keeps its place in the change log as the
database's own notion of what it had seen (`pg_snapshot`): a row counts as new exactly if its
writer was not visible there, so rows that become visible out of order are never missed, and
writers need no lock to keep an order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from dovetail.aio.backoff import full_jitter
from dovetail.core.errors import Malformed
from dovetail.ledger.database import change_log
from dovetail.ledger.database.protocol import (
    STREAMED_ROWS,
    Change,
    Cursor,
    Delta,
    LedgerBusy,
    Log,
    Look,
    Operation,
    Row,
    T,
    Transaction,
)

THREADS = 8
ATTEMPTS = 12
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.002, 0.128
"""Between two attempts, at the most."""
WAIT_SECONDS = 10
KEPT_CHANGES = 100_000
TRIM_EVERY = 1_000

RETRIED = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    # Two operations made the same thing at once: the second try sees it and says so properly.
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)

NEWS = """
    SELECT pg_current_snapshot()::text,
           (SELECT xid FROM changes_trimmed) < pg_snapshot_xmin(s.seen),
           ARRAY (SELECT DISTINCT ARRAY[kind::bigint, root_id] FROM changes
                  WHERE xid >= pg_snapshot_xmin(s.seen)
                    AND NOT pg_visible_in_snapshot(xid, s.seen))
    FROM (SELECT ?::pg_snapshot) AS s (seen)"""
"""Where the log stands now, whether nothing unseen was trimmed, and what is unseen."""


@lru_cache(maxsize=1024)
def native(statement: str) -> bytes:
    """The statement with psycopg's mark for parameters."""
    return statement.replace("%", "%%").replace("?", "%s").encode()


class PostgresTransaction:
    """Operations on one connection, inside a transaction that somebody else began."""

    for_update = " FOR UPDATE"

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self.now = int(time.time())
        self._changes: set[tuple[Change, int]] = set()

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._cursor.execute(native(statement), parameters).fetchall()

    def stream(self, statement: str) -> Iterator[list[Row]]:
        self._cursor.execute(native(statement))
        while rows := self._cursor.fetchmany(STREAMED_ROWS):
            yield rows

    def row(self, statement: str, parameters: Sequence[Any] = ()) -> Row | None:
        return self._cursor.execute(native(statement), parameters).fetchone()

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return self._cursor.execute(native(statement), parameters).rowcount

    def many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(native(statement), parameters)

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def reserve_ids(self, table: str, count: int) -> int:
        # Concurrent loads wait for each other; single inserts go on and are stepped over.
        self.run("SELECT pg_advisory_xact_lock(4712)")
        sequence = f"{table}_id_seq"
        row = self.row("SELECT setval(?, nextval(?) + ?)", (sequence, sequence, count))
        assert row
        return int(row[0]) - count

    def changed(self, change: Change, root_id: int = 0) -> None:
        self._changes.add((change, root_id))

    def log_changes(self) -> None:
        if self._changes:
            self.many("INSERT INTO changes (kind, root_id) VALUES (?, ?)", sorted(self._changes))


class PostgresLedger:
    """The database at a `postgresql://` URL."""

    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=THREADS,
            kwargs={"autocommit": True},
            timeout=WAIT_SECONDS,
            open=True,
        )
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ledger")
        self._writes = 0

    @staticmethod
    def revision(url: str) -> str | None:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except errors.UndefinedTable:
            return None
        except psycopg.OperationalError as error:
            raise LedgerBusy(f"the database cannot be reached: {error}") from error
        return str(found[0]) if found else None

    def write(self, operation: Operation[T]) -> Future[T]:
        return self._threads.submit(self._write, operation)

    def read(self, operation: Operation[T]) -> Future[T]:
        return self._threads.submit(self._read, operation)

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        return self._threads.submit(self._poll, cursor)

    def follow(self, cursor: Cursor | None, look: Look[T]) -> Future[tuple[Cursor, T]]:
        def looked(tx: Transaction) -> tuple[Cursor, T]:
            newest, log = self._news(tx, cursor)
            return newest, look(tx, log)

        return self._threads.submit(self._read, looked)

    def close(self) -> None:
        self._threads.shutdown()
        self._pool.close()

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except (PoolTimeout, psycopg.OperationalError) as error:
            if isinstance(error, RETRIED):
                raise
            raise LedgerBusy(f"the database cannot be reached: {error}") from error
        except psycopg.DataError as error:
            raise Malformed(f"the database cannot hold a value: {error}") from error

    def _write(self, operation: Operation[T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                with self._connection() as connection, connection.transaction():
                    tx = PostgresTransaction(connection)
                    result = operation(tx)
                    tx.log_changes()
            except RETRIED as error:
                last = error
                time.sleep(full_jitter(attempt + 1, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))
                continue
            self._trim_sometimes()
            return result
        raise LedgerBusy(f"other writers kept changing the same rows: {last}")

    def _read(self, operation: Operation[T]) -> T:
        with self._connection() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return operation(PostgresTransaction(connection))
            finally:
                connection.execute("ROLLBACK")

    def _poll(self, cursor: Cursor | None) -> Delta | None:
        if cursor is not None:
            # A look outside a transaction first: almost always there is nothing new.
            with self._connection() as connection:
                newest, complete, log = news(PostgresTransaction(connection), cursor)
            if complete and not log:
                # Nothing to take in, but a newer place keeps the next look short.
                return Delta(cursor=newest) if newest != cursor else None
        return self._read(lambda tx: change_log.delta(tx, *self._news(tx, cursor)))

    @staticmethod
    def _news(tx: Transaction, cursor: Cursor | None) -> tuple[Cursor, Log | None]:
        if cursor is None:
            row = tx.row("SELECT pg_current_snapshot()::text")
            assert row
            return row[0], None
        newest, complete, log = news(tx, cursor)
        return newest, log if complete else None

    def _trim_sometimes(self) -> None:
        self._writes += 1
        if self._writes % TRIM_EVERY:
            return
        with self._connection() as connection:
            connection.execute(
                """WITH gone AS (
                     DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - %s
                     RETURNING xid)
                   UPDATE changes_trimmed SET xid = newest.xid
                   FROM (SELECT xid FROM gone ORDER BY xid DESC LIMIT 1) newest
                   WHERE changes_trimmed.xid < newest.xid""",
                (KEPT_CHANGES,),
            )


def news(tx: Transaction, cursor: Cursor) -> tuple[Cursor, bool, list[tuple[int, int]]]:
    row = tx.row(NEWS, (cursor,))
    assert row
    newest, complete, log = row
    return newest, complete, [(kind, root_id) for kind, root_id in log]
