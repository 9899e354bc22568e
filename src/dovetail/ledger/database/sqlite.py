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
from typing import Any

from dovetail.ledger.database import change_log, sqlite_file
from dovetail.ledger.database.calls import LedgerCall, Watchdog, run
from dovetail.ledger.database.group_commit import Committer, NeedsOwnCommit
from dovetail.ledger.database.loading import USAGE, marks
from dovetail.ledger.database.probing import FailedWrites, probe
from dovetail.ledger.database.protocol import (
    STREAMED_ROWS,
    Change,
    Cursor,
    Delta,
    Log,
    Look,
    Operation,
    OutcomeUnknown,
    Row,
    T,
    Transaction,
)
from dovetail.ledger.database.settings import DEFAULTS, LedgerSettings
from dovetail.ledger.database.sqlite_file import FileFault, LedgerFile

SQLITE = "sqlite:///"
"""How URLs of such ledgers begin."""
KEPT_CHANGES = 100_000
"""Rows of the change log that are kept; a reader further behind loads everything anew."""
FEW_CHANGES, FEW_INVENTORIES = 64, 2000
"""Changes of use, and inventories in the trees they are in, that are read in a millisecond."""
REFUSED_COMMITS = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)
"""The end of the transaction did not get into the log: it was not committed."""


class SqliteTransaction:
    """Operations on one connection, inside a transaction that somebody else began."""

    for_update = ""
    writes_in_queries = False

    def for_update_of(self, *tables: str) -> str:  # noqa: ARG002
        return ""

    def __init__(
        self, connection: sqlite3.Connection, call: LedgerCall[Any], *, shares_commit: bool = False
    ) -> None:
        self._connection = connection
        self._call, self._shares_commit = call, shares_commit
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

    def lift_timeouts(self) -> None:
        self._call.lift()
        if self._shares_commit:
            raise NeedsOwnCommit

    def log_changes(self) -> None:
        self.many("INSERT INTO changes (kind, root_id) VALUES (?, ?)", sorted(self._changes))


class SqliteBatch:
    """The writer's side of group commit. Raises FileFault where the file cannot be used."""

    def __init__(self, file: LedgerFile, busy_seconds: float) -> None:
        self._file = file
        self._connection = file.connect(busy_seconds)
        self._commits = 0
        self._is_large = False
        """Whether this batch is one operation that needs a commit of its own."""

    def begin(self) -> None:
        with self._file.faults_told:
            self._connection.execute("BEGIN IMMEDIATE")

    def attempt(self, operation: Operation[T], call: LedgerCall[T], *, shares_commit: bool) -> T:
        self._is_large = not shares_commit
        with self._file.faults_told:
            execute = self._connection.execute
            execute("SAVEPOINT operation")
            try:
                tx = SqliteTransaction(self._connection, call, shares_commit=shares_commit)
                result = operation(tx)
                tx.log_changes()
                call.begin_commit()
            except BaseException:
                # After some faults SQLite has rolled everything back by itself.
                if self._connection.in_transaction:
                    execute("ROLLBACK TO operation")
                    execute("RELEASE operation")
                raise
            execute("RELEASE operation")
            return result

    def commit(self) -> None:
        self._file.check()
        self._commits += 1
        with self._file.faults_told:
            if self._commits % 1000 == 0:
                newest = "(SELECT max(seq) FROM changes)"
                self._connection.execute(
                    f"DELETE FROM changes WHERE seq <= {newest} - {KEPT_CHANGES}"  # noqa: S608
                )
            self._commit()
            if self._is_large:
                # Pages of a bulk load are of no use to the claims that follow.
                self._connection.execute("PRAGMA shrink_memory")
        try:
            self._file.check()
        except FileFault as error:
            raise OutcomeUnknown(f"written, and maybe lost: {error}") from error

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in REFUSED_COMMITS:
                raise
            raise OutcomeUnknown(f"writing the commit to the disk failed: {error}") from error

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class SqliteLedger:
    """The database file at a `sqlite:///path` URL, which has its tables."""

    def __init__(self, url: str, settings: LedgerSettings = DEFAULTS) -> None:
        self._file = LedgerFile(database_path(url))
        self._busy_seconds = settings.answer_seconds
        self._watchdog = Watchdog(settings.answer_seconds, settings.silence_seconds)
        self._committer = Committer(lambda: SqliteBatch(self._file, self._busy_seconds))
        self._readers = ThreadPoolExecutor(settings.readers, thread_name_prefix="ledger-reader")
        self._local = threading.local()
        self._reading_connections: set[sqlite3.Connection] = set()
        self._failed_writes = FailedWrites()

    @staticmethod
    def revision(url: str) -> str | None:
        return sqlite_file.revision(database_path(url))

    def write(self, operation: Operation[T]) -> Future[T]:
        call: LedgerCall[T] = self._watchdog.call()
        self._failed_writes.watch(call.future)
        self._committer.submit(operation, call)
        return call.future

    def read(self, operation: Operation[T]) -> Future[T]:
        call: LedgerCall[T] = self._watchdog.call()
        self._readers.submit(run, call, lambda: self._read(operation, call))
        return call.future

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        return self.read(lambda tx: change_log.delta(tx, *self._news(tx, cursor)))

    def glance(self, cursor: Cursor) -> Delta | None:
        # Mostly there is nothing new, or a claim or two: reading that takes far less time than
        # handing the question to another thread. What cannot be read, who waits for it finds out.
        try:
            self._file.check_lately()
            with self._file.faults_told:
                return few_changes(self._connection(0.0), int(cursor))
        except FileFault:
            self._drop_connection()
            return None

    def follow(self, cursor: Cursor | None, look: Look[T]) -> Future[tuple[Cursor, T]]:
        def looked(tx: Transaction) -> tuple[Cursor, T]:
            newest, log = self._news(tx, cursor)
            if log is None:
                tx.lift_timeouts()
            return newest, look(tx, log)

        return self.read(looked)

    def check(self) -> Future[None]:
        return self.write(probe) if self._failed_writes.was_last else self.read(lambda _: None)

    def close(self) -> None:
        self._committer.close()
        self._readers.shutdown()
        self._watchdog.close()
        # All of them: the last to be closed has SQLite write its log back into the file.
        for each in self._reading_connections:
            each.close()
        self._file.close()

    def _connection(self, busy_seconds: float) -> sqlite3.Connection:
        """The calling thread's own."""
        if not hasattr(self._local, "connection"):
            self._local.connection = self._file.connect(busy_seconds, any_thread=True)
            self._reading_connections.add(self._local.connection)
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _drop_connection(self) -> None:
        """After a fault the calling thread's connection is opened anew."""
        if hasattr(self._local, "connection"):
            self._reading_connections.discard(self._local.connection)
            self._local.connection.close()
            del self._local.connection

    def _read(self, operation: Operation[T], call: LedgerCall[T]) -> T:
        self._file.check_lately()
        try:
            with self._file.faults_told:
                return self._view(self._connection(self._busy_seconds), operation, call)
        except FileFault:
            self._drop_connection()
            raise

    @staticmethod
    def _view(connection: sqlite3.Connection, operation: Operation[T], call: LedgerCall[T]) -> T:
        connection.execute("BEGIN")
        try:
            return operation(SqliteTransaction(connection, call))
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")

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


def few_changes(connection: sqlite3.Connection, cursor: int) -> Delta | None:
    """What is new since a row of the change log that is still there, if it is little.

    Two statements without a transaction: use that is read after the log may be newer, never older,
    and what made it so is read once more with the next change.
    """
    (first, *log) = connection.execute(
        "SELECT seq, kind, root_id FROM changes WHERE seq >= ? ORDER BY seq LIMIT ?",
        (cursor, FEW_CHANGES + 2),
    ).fetchall() or [(None,)]
    few = first[0] == cursor and len(log) <= FEW_CHANGES
    if not few or any(kind != Change.USAGE for _, kind, _ in log):
        return None
    if not log:
        return Delta(cursor=str(cursor))
    roots = sorted({root for _, _, root in log})
    usage = connection.execute(
        f"{USAGE.format(roots=marks(len(roots)))} LIMIT ?", (*roots, FEW_INVENTORIES + 1)
    ).fetchall()
    return Delta(cursor=str(log[-1][0]), usage=usage) if len(usage) <= FEW_INVENTORIES else None


def database_path(url: str) -> str:
    return url.removeprefix(SQLITE)
