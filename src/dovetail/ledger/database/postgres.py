"""The ledger on PostgreSQL: for replicas.

Every write is a transaction of its own that locks the providers it touches in the order of their
ids; PostgreSQL gathers their commits itself. A reader keeps its place in the change log as the
database's own notion of what it had seen (`pg_snapshot`): a row counts as new exactly if its
writer was not visible there, so rows that become visible out of order are never missed, and
writers need no lock to keep an order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors, sql

from dovetail.aio.backoff import full_jitter
from dovetail.ledger.database import change_log
from dovetail.ledger.database.calls import LedgerCall, Watchdog, run
from dovetail.ledger.database.connections import (
    RETRIED,
    Connections,
    ConnectionThreads,
    Driver,
    answering,
    options_of,
)
from dovetail.ledger.database.postgres_transactions import (
    NO_TIMEOUTS,
    commit,
    timeouts,
    transaction,
)
from dovetail.ledger.database.probing import FailedWrites, probe
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
    RowsContended,
    T,
    Transaction,
)
from dovetail.ledger.database.settings import DEFAULTS, LedgerSettings

News = tuple[Cursor, bool, list[tuple[int, int]]]
"""What NEWS gives."""

ATTEMPTS = 12
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.002, 0.128
"""Between two attempts, at the most."""
KEPT_CHANGES = 100_000
TRIM_EVERY = 1_000

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
    writes_in_queries = True

    def for_update_of(self, *tables: str) -> str:
        return f" FOR UPDATE OF {', '.join(tables)}"

    def __init__(self, driver: Driver, call: LedgerCall[Any]) -> None:
        self._driver, self._call = driver, call
        self._cursor = driver.cursor()
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

    def lift_timeouts(self) -> None:
        self._call.lift()
        self._driver.execute(NO_TIMEOUTS, prepare=False)

    def log_changes(self) -> None:
        if self._changes:
            self.many("INSERT INTO changes (kind, root_id) VALUES (?, ?)", sorted(self._changes))


class PostgresLedger:
    """The database at a `postgresql://` URL.

    Reads and writes have threads and connections of their own: writes that wait for rows which
    others have locked keep nobody from reading.
    """

    def __init__(self, url: str, settings: LedgerSettings = DEFAULTS) -> None:
        self._watchdog = Watchdog(settings.answer_seconds, settings.silence_seconds)
        self._reading = ConnectionThreads(
            "ledger-reader", settings.readers, Connections(url, settings)
        )
        self._writing = ConnectionThreads(
            "ledger-writer", settings.writers, Connections(url, settings)
        )
        self._timeouts = timeouts(settings)
        self._look_at = look_statements(settings.statement_seconds)
        self._writes = 0
        self._failed_writes = FailedWrites()

    @staticmethod
    def revision(url: str) -> str | None:
        try:
            with answering(url, DEFAULTS) as driver:
                found = driver.execute("SELECT version_num FROM alembic_version").fetchone()
        except errors.UndefinedTable:
            return None
        except psycopg.ProgrammingError as error:
            raise LedgerBusy(f"the ledger's tables cannot be read: {error}") from error
        except psycopg.Error as error:
            raise LedgerBusy(f"the database cannot be reached: {error}") from error
        return str(found[0]) if found else None

    def write(self, operation: Operation[T]) -> Future[T]:
        written = self._submit(self._writing, lambda call: self._write(call, operation))
        self._failed_writes.watch(written)
        written.add_done_callback(self._trim_sometimes)
        return written

    def read(self, operation: Operation[T]) -> Future[T]:
        return self._submit(self._reading, lambda call: self._read(call, operation))

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        return self._submit(self._reading, lambda call: self._poll(call, cursor))

    def glance(self, cursor: Cursor) -> Delta | None:  # noqa: ARG002
        return None

    def follow(self, cursor: Cursor | None, look: Look[T]) -> Future[tuple[Cursor, T]]:
        def looked(tx: Transaction) -> tuple[Cursor, T]:
            newest, log = self._news(tx, cursor)
            if log is None:
                tx.lift_timeouts()
            return newest, look(tx, log)

        return self.read(looked)

    def check(self) -> Future[None]:
        if self._failed_writes.was_last:
            return self.write(probe)
        return self._submit(self._reading, self._refuse_standby)

    def close(self) -> None:
        for each in (self._reading, self._writing):
            each.close()
        self._watchdog.close()

    def _submit(
        self, threads: ConnectionThreads, work: Callable[[LedgerCall[Any]], T]
    ) -> Future[T]:
        call: LedgerCall[T] = self._watchdog.call()
        threads.executor.submit(run, call, lambda: work(call))
        return call.future

    def _write(self, call: LedgerCall[T], operation: Operation[T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return self._writing.use(call, lambda driver: self._commit(driver, call, operation))
            except RETRIED as error:
                last = error
                time.sleep(full_jitter(attempt + 1, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))
        raise RowsContended(f"other writers kept changing the same rows: {last}")

    def _commit(self, driver: Driver, call: LedgerCall[T], operation: Operation[T]) -> T:
        with transaction(driver, b"BEGIN; " + self._timeouts):
            tx = PostgresTransaction(driver, call)
            result = operation(tx)
            tx.log_changes()
            call.begin_commit()
            commit(driver)
        return result

    def _read(self, call: LedgerCall[Any], operation: Operation[T]) -> T:
        return self._reading.use(call, lambda driver: self._view(driver, call, operation))

    def _view(self, driver: Driver, call: LedgerCall[Any], operation: Operation[T]) -> T:
        begin = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; " + self._timeouts
        with transaction(driver, begin):
            return operation(PostgresTransaction(driver, call))

    def _poll(self, call: LedgerCall[Any], cursor: Cursor | None) -> Delta | None:
        if cursor is not None:
            # A look in one round trip first: almost always there is nothing new.
            newest, complete, log = self._reading.use(
                call, lambda driver: self._look(driver, cursor)
            )
            if complete and not log:
                # Nothing to take in, but a newer place keeps the next look short.
                return Delta(cursor=newest) if newest != cursor else None
        return self._read(call, lambda tx: change_log.delta(tx, *self._news(tx, cursor)))

    def _look(self, driver: Driver, cursor: Cursor) -> News:
        """The news, by two statements that are sent at once and are a transaction for that."""
        found = driver.execute(self._look_at(cursor), prepare=False)
        found.nextset()
        return news_of(found.fetchone())

    @staticmethod
    def _news(tx: Transaction, cursor: Cursor | None) -> tuple[Cursor, Log | None]:
        if cursor is None:
            row = tx.row("SELECT pg_current_snapshot()::text")
            assert row
            return row[0], None
        newest, complete, log = news_of(tx.row(NEWS, (cursor,)))
        return newest, log if complete else None

    def _refuse_standby(self, call: LedgerCall[None]) -> None:
        def ask(driver: Driver) -> None:
            row = driver.execute("SHOW transaction_read_only").fetchone()
            if row and row[0] == "on":
                raise errors.ReadOnlySqlTransaction("it is a standby, or set to read-only")

        self._reading.use(call, ask)

    def _trim_sometimes(self, written: Future[Any]) -> None:
        """A write like any other, after one that is done: its failure is nobody's answer."""
        if written.cancelled() or written.exception() is not None:
            return
        self._writes += 1
        if self._writes % TRIM_EVERY == 0 and not self._writing.is_closed:
            self.write(trim)


@contextmanager
def migrating(url: str) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """How to connect for migrations, and how to begin; errors of the driver become LedgerBusy."""
    try:
        # The first: two replicas that start together must not both migrate.
        yield (
            options_of(url, DEFAULTS),
            (NO_TIMEOUTS.decode(), "SELECT pg_advisory_xact_lock(4711)"),
        )
    except psycopg.Error as error:
        raise LedgerBusy(f"the ledger's tables could not be made or changed: {error}") from error


def trim(tx: Transaction) -> None:
    tx.run(
        """WITH gone AS (
             DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?
             RETURNING xid)
           UPDATE changes_trimmed SET xid = newest.xid
           FROM (SELECT xid FROM gone ORDER BY xid DESC LIMIT 1) newest
           WHERE changes_trimmed.xid < newest.xid""",
        (KEPT_CHANGES,),
    )


def look_statements(statement_seconds: float) -> Callable[[Cursor], bytes]:
    """Makes the statements that look at the log once, with a timeout of their own."""
    timeout = f"SET LOCAL statement_timeout = {int(statement_seconds * 1000)}; "
    before, after = f"{timeout}{NEWS}".encode().split(b"?")

    def statements(cursor: Cursor) -> bytes:
        # Several statements take no parameters; a cursor has nothing in it that would need it.
        assert not cursor.strip("0123456789:,"), cursor
        return b"%b'%b'%b" % (before, cursor.encode(), after)

    return statements


def news_of(row: Row | None) -> News:
    assert row
    newest, complete, log = row
    return newest, complete, [(kind, root_id) for kind, root_id in log]
