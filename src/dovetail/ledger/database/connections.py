"""Connections to PostgreSQL that can be cut: an idle stack of them for the threads of a ledger.

psycopg's own pool waits in the background for a database that is away, longer each time, and tells
its callers nothing but that they waited; nor can it free a thread that waits for a silent network.
Here a thread that needs a connection makes it, and hears why it cannot. Threads are bounded, so
connections are.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from dovetail.core.errors import Malformed
from dovetail.ledger.database.calls import LedgerCall
from dovetail.ledger.database.protocol import LedgerBusy, Row, RowsContended, T
from dovetail.ledger.database.settings import LedgerSettings

Driver = psycopg.Connection[Row]

RETRIED = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    # Two operations made the same thing at once: the second try sees it and says so properly.
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)
UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InternalError,
    psycopg.InterfaceError,
    # Somebody restores the tables, or took our rights away.
    errors.UndefinedTable,
    errors.InsufficientPrivilege,
)
"""Timeouts, shutdowns, full disks, standbys, broken connections: not ours to mend by trying."""

KEEPALIVE_PROBES = 3
LAST_DATA_SENT, LAST_DATA_RECEIVED = 44, 52
"""Where Linux's `struct tcp_info` has them, in milliseconds ago."""
TCP_INFO_BYTES = 56


class ConnectionBroke(LedgerBusy):
    """Before a commit was asked for: nothing was done."""


class CuttableConnection:
    """A connection of the driver's, with a handle of our own on its socket.

    The handle stays ours when the driver closes its own, so cutting never meets another's socket.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._socket = socket.socket(fileno=os.dup(driver.pgconn.socket))
        self._is_cut = False

    @property
    def is_idle(self) -> bool:
        """Whether it can be used for another transaction."""
        status = self.driver.pgconn.transaction_status
        return not self._is_cut and status == psycopg.pq.TransactionStatus.IDLE

    def cut(self) -> None:
        self._is_cut = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def silent_seconds(self) -> float:
        try:
            told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        except OSError:
            return 0.0
        sent, received = (
            struct.unpack_from("=I", told, at)[0] for at in (LAST_DATA_SENT, LAST_DATA_RECEIVED)
        )
        return float(min(sent, received)) / 1000

    def close(self) -> None:
        self._socket.close()
        self.driver.close()


class Connections:
    """Idle connections of one kind of threads, the last used first."""

    def __init__(self, url: str, settings: LedgerSettings) -> None:
        self._url, self._settings = url, settings
        self._options = options_of(url, settings)
        self._idle: list[CuttableConnection] = []
        self._lock = threading.Lock()

    @contextmanager
    def used_by(self, call: LedgerCall[Any]) -> Iterator[Driver]:
        """A connection while the block runs, cut if the call is given up meanwhile.

        Raises LedgerBusy if there is none to be had; errors of the driver are the block's.
        """
        connection, is_new = self._taken()
        try:
            call.waits_for(connection)
            if is_new:
                self._prepare(connection.driver)
            yield connection.driver
        finally:
            call.waits_for(None)
            self._give_back(connection)

    def drop_idle(self) -> None:
        """Close those that nobody uses: one beside them broke, and they are most likely broken."""
        with self._lock:
            dropped, self._idle = self._idle, []
        for each in dropped:
            each.close()

    def _taken(self) -> tuple[CuttableConnection, bool]:
        """An idle connection or a new one, and whether it is new."""
        with self._lock:
            if self._idle:
                return self._idle.pop(), False
        try:
            driver = psycopg.connect(self._url, autocommit=True, **self._options)
        except psycopg.Error as error:
            raise LedgerBusy(f"the database cannot be reached: {error}") from error
        return CuttableConnection(driver), True

    def _prepare(self, driver: Driver) -> None:
        try:
            driver.execute(server_keepalives(self._settings.keepalive_seconds))
        except psycopg.Error as error:
            raise LedgerBusy(f"the database does not answer: {error}") from error

    def _give_back(self, connection: CuttableConnection) -> None:
        if connection.is_idle:
            with self._lock:
                self._idle.append(connection)
        else:
            connection.close()


class ConnectionThreads:
    """Threads of one kind, and the connections they use: never more of these than of those."""

    def __init__(self, name: str, count: int, connections: Connections) -> None:
        self.executor = ThreadPoolExecutor(count, thread_name_prefix=name)
        self.is_closed = False
        self._connections = connections

    def use(self, call: LedgerCall[Any], work: Callable[[Driver], T]) -> T:
        """Do the work on a connection; once more on a new one, should it break before a commit.

        A database that was restarted leaves connections behind that break at the first word.
        Raises LedgerBusy, OutcomeUnknown, Malformed, RETRIED.
        """
        try:
            return self._use(call, work)
        except ConnectionBroke:
            if call.is_over:
                raise
            self._connections.drop_idle()
        return self._use(call, work)

    def close(self) -> None:
        """Finish what was submitted, then end."""
        self.is_closed = True
        self.executor.shutdown()
        self._connections.drop_idle()

    def _use(self, call: LedgerCall[Any], work: Callable[[Driver], T]) -> T:
        with self._connections.used_by(call) as driver:
            try:
                return work(driver)
            except RETRIED:
                raise
            except psycopg.DataError as error:
                raise Malformed(f"the database cannot hold a value: {error}") from error
            except errors.ReadOnlySqlTransaction as error:
                # After a failover the primary is elsewhere: a new connection may find it.
                driver.close()
                self._connections.drop_idle()
                raise LedgerBusy(f"the database takes no writes: {error}") from error
            except errors.LockNotAvailable as error:
                raise RowsContended(f"others hold what is to be changed: {error}") from error
            except UNAVAILABLE as error:
                if driver.closed:
                    raise ConnectionBroke(
                        f"the connection to the database broke: {error}"
                    ) from error
                raise LedgerBusy(f"the database refuses: {error}") from error


@contextmanager
def answering(url: str, settings: LedgerSettings) -> Iterator[Driver]:
    """A connection for a question outside any ledger, cut when its answer takes too long."""
    driver = psycopg.connect(url, autocommit=True, **options_of(url, settings))
    connection = CuttableConnection(driver)
    watch = threading.Timer(settings.answer_seconds, connection.cut)
    watch.start()
    try:
        yield driver
    finally:
        watch.cancel()
        connection.close()


def options_of(url: str, settings: LedgerSettings) -> dict[str, Any]:
    """How to connect; what the URL says itself is left to it."""
    seconds = settings.keepalive_seconds
    interval = max(seconds // (KEEPALIVE_PROBES + 1), 1)
    wanted: dict[str, Any] = {
        "connect_timeout": settings.connect_seconds,
        "keepalives": 1,
        "keepalives_idle": interval,
        "keepalives_interval": interval,
        "keepalives_count": KEEPALIVE_PROBES,
        "tcp_user_timeout": seconds * 1000,
        "application_name": "dovetail",
    }
    said = conninfo_to_dict(url)
    return {name: value for name, value in wanted.items() if name not in said}


def server_keepalives(seconds: int) -> bytes:
    """Statements that have the server's end find out, too, and let go of our locks."""
    interval = max(seconds // (KEEPALIVE_PROBES + 1), 1)
    return (
        f"SET tcp_keepalives_idle = {interval}; SET tcp_keepalives_interval = {interval}; "
        f"SET tcp_keepalives_count = {KEEPALIVE_PROBES}; SET tcp_user_timeout = {seconds * 1000}"
    ).encode()
