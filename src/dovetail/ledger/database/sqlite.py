"""The ledger on SQLite: the embedded default.

Write-ahead log, full synchronisation, one writing thread with group commit; readers have
connections of their own and never wait for it. Several processes may share the file.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dovetail.ledger.database import change_log
from dovetail.ledger.database.group_commit import Committer
from dovetail.ledger.database.loading import marks
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

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "cache_size=-65536",
    # Copying the log back waits for the disk several times: rarely, then.
    "wal_autocheckpoint=4000",
)
BUSY_SECONDS = 30
READERS = 4
KEPT_CHANGES = 100_000
"""Rows of the change log that are kept; a reader further behind loads everything anew."""


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=512
    )
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


class SqliteTransaction:
    """Operations on one connection, inside a transaction that somebody else began."""

    for_update = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.now = int(time.time())
        self._changes: set[tuple[Change, int]] = set()

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, parameters).fetchall()

    def stream(self, statement: str) -> Iterator[list[Row]]:
        cursor = self._connection.execute(statement)
        while rows := cursor.fetchmany(STREAMED_ROWS):
            yield rows

    def row(self, statement: str, parameters: Sequence[Any] = ()) -> Row | None:
        found: Row | None = self._connection.execute(statement, parameters).fetchone()
        return found

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return self._connection.execute(statement, parameters).rowcount

    def many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, parameters)

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        into = f"INSERT INTO {table} ({', '.join(columns)})"
        self.many(f"{into} VALUES ({marks(len(columns))})", rows)

    def reserve_ids(self, table: str, count: int) -> int:  # noqa: ARG002
        # The write lock is held, so the next ids are ours; AUTOINCREMENT never hands out old ones.
        row = self.row("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
        return (row[0] if row else 0) + 1

    def changed(self, change: Change, root_id: int = 0) -> None:
        self._changes.add((change, root_id))

    def log_changes(self) -> None:
        self.many("INSERT INTO changes (kind, root_id) VALUES (?, ?)", sorted(self._changes))


class SqliteBatch:
    """The writer's side of group commit."""

    def __init__(self, path: str) -> None:
        self._connection = connect(path)
        self._commits = 0

    def begin(self) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise LedgerBusy(f"the database is held by another process: {error}") from error

    def attempt(self, operation: Operation[T]) -> T:
        execute = self._connection.execute
        execute("SAVEPOINT operation")
        try:
            tx = SqliteTransaction(self._connection)
            result = operation(tx)
            tx.log_changes()
        except BaseException:
            execute("ROLLBACK TO operation")
            execute("RELEASE operation")
            raise
        execute("RELEASE operation")
        return result

    def commit(self) -> None:
        self._commits += 1
        if self._commits % 1000 == 0:
            newest = "(SELECT max(seq) FROM changes)"
            self._connection.execute(
                f"DELETE FROM changes WHERE seq <= {newest} - {KEPT_CHANGES}"  # noqa: S608
            )
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class SqliteLedger:
    """The database file at a `sqlite:///path` URL."""

    def __init__(self, url: str) -> None:
        self._path = database_path(url)
        self._committer = Committer(lambda: SqliteBatch(self._path))
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="ledger-reader")
        self._local = threading.local()

    @staticmethod
    def revision(url: str) -> str | None:
        path = Path(database_path(url))
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            return None
        connection = sqlite3.connect(path)
        try:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:
            return None
        finally:
            connection.close()
        return str(found[0]) if found else None

    def write(self, operation: Operation[T]) -> Future[T]:
        return self._committer.submit(operation)

    def read(self, operation: Operation[T]) -> Future[T]:
        return self._readers.submit(self._read, operation)

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        # A look in the caller's own thread first: almost always there is nothing new, and finding
        # that out takes far less time than handing the question to another thread.
        if cursor is not None and self._newest() == int(cursor):
            nothing: Future[Delta | None] = Future()
            nothing.set_result(None)
            return nothing
        return self._readers.submit(
            self._read, lambda tx: change_log.delta(tx, *self._news(tx, cursor))
        )

    def follow(self, cursor: Cursor | None, look: Look[T]) -> Future[tuple[Cursor, T]]:
        def looked(tx: Transaction) -> tuple[Cursor, T]:
            newest, log = self._news(tx, cursor)
            return newest, look(tx, log)

        return self._readers.submit(self._read, looked)

    def close(self) -> None:
        self._committer.close()
        self._readers.shutdown()

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = connect(self._path)
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _read(self, operation: Operation[T]) -> T:
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            return operation(SqliteTransaction(connection))
        finally:
            connection.execute("COMMIT")

    def _newest(self) -> int:
        row = self._connection().execute("SELECT max(seq) FROM changes").fetchone()
        return row[0] or 0

    @staticmethod
    def _news(tx: Transaction, cursor: Cursor | None) -> tuple[Cursor, Log | None]:
        """Where the log stands, and what of it is unseen; None if that is not known any more."""
        # Apart, each is a look at one end of the table; together SQLite would read all of it.
        bounds = tx.row("SELECT (SELECT min(seq) FROM changes), (SELECT max(seq) FROM changes)")
        oldest, newest = bounds if bounds and bounds[1] is not None else (0, 0)
        if cursor is None or oldest > int(cursor) + 1:
            return str(newest), None
        log = tx.rows("SELECT kind, root_id FROM changes WHERE seq > ?", (int(cursor),))
        return str(newest), [(kind, root_id) for kind, root_id in log]


def database_path(url: str) -> str:
    return url.removeprefix("sqlite:///")
