"""The file of a SQLite ledger: opened, recognised again, and its faults told in sentences.

`sqlite` opens every connection here, and has the file checked before it reads and before it
acknowledges what it wrote: SQLite itself goes on writing to a file that has no name any more.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from dovetail.ledger.database.protocol import LedgerBusy

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "cache_size=-65536",
    # Copying the log back waits for the disk several times: rarely, then.
    "wal_autocheckpoint=4000",
)
OPENING_SECONDS = 60.0
"""How long one who opens a ledger waits for another who makes its tables."""

UNCHECKED_SECONDS = 0.05
"""How long reads rely on a check; what is written is checked every time."""

BESIDE = ("", "-wal", "-shm")
"""The database, its log, and the locks of all who share them: without one, writes get lost."""

SENTENCES = {
    sqlite3.SQLITE_BUSY: "is held by another process",
    sqlite3.SQLITE_LOCKED: "is held by another process",
    sqlite3.SQLITE_PERM: "may not be opened: this user needs the right to read and write it",
    sqlite3.SQLITE_READONLY: "may not be written: this user needs the right to write it and the "
    "directory it is in, on a file system that is not read-only",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; make room",
    sqlite3.SQLITE_IOERR: "cannot be read or written: look at the disk",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it has to be a file in a directory that is there, "
    "and this user needs the right to write both",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore a backup (`dovetail db restore`) to a new file",
    sqlite3.SQLITE_NOTADB: "is no SQLite database, or damaged: name another, or restore a backup "
    "(`dovetail db restore`) to a new file",
    sqlite3.SQLITE_NOMEM: "cannot be used: there is too little memory",
    sqlite3.SQLITE_PROTOCOL: "cannot be locked: is it on a network file system?",
    sqlite3.SQLITE_INTERRUPT: "was being read or written when that was interrupted",
}
"""By what SQLite calls primary result codes: those that say something about file and machine."""


class FileFault(LedgerBusy):
    """Something is the matter with the file."""

    def __init__(self, path: str, what: str, cause: sqlite3.Error | None = None) -> None:
        self.code = cause.sqlite_errorcode & 0xFF if cause is not None else 0
        told = "" if cause is None else f" ({cause})"
        super().__init__(f"the database file {path} {what}{told}")


class FaultsTold:
    """While it is entered, errors of SQLite that are about the file are raised as FileFault.

    Others are bugs, and stay. A class, since every look at the ledger enters one.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in SENTENCES:
                raise FileFault(self._path, SENTENCES[code], error) from error


class FileIdentity(NamedTuple):
    device: int
    inode: int
    is_emptied: bool
    """A database with tables has at least a page; the log may be empty."""


def connect(path: str, busy_seconds: float, *, any_thread: bool = False) -> sqlite3.Connection:
    """A connection to the file, which has to be there. Raises FileFault."""
    with FaultsTold(path):
        # Not "rwc": whoever opens a ledger has seen its tables, and makes no empty one.
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=busy_seconds,
            isolation_level=None,
            cached_statements=512,
            check_same_thread=not any_thread,
        )
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            # Only now are the files open.
            connection.execute("SELECT count(*) FROM sqlite_master")
        except BaseException:
            connection.close()
            raise
        return connection


class LedgerFile:
    """The file that is open under a path, held open so that it stays the same while it is used."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._names = tuple(path + suffix for suffix in BESIDE)
        self._anchor = connect(path, OPENING_SECONDS, any_thread=True)
        self._opened = self._there()
        self._checked_at = time.monotonic()
        self.faults_told = FaultsTold(path)

    def connect(self, busy_seconds: float, *, any_thread: bool = False) -> sqlite3.Connection:
        connection = connect(self.path, busy_seconds, any_thread=any_thread)
        try:
            self.check()
        except LedgerBusy:
            connection.close()
            raise
        return connection

    def check(self) -> None:
        """Raises FileFault if what is open is not what has the name, or was emptied."""
        there = self._there()
        if there == self._opened:
            self._checked_at = time.monotonic()
            return
        self._checked_at = float("-inf")
        for name, now, before in zip(self._names, there, self._opened, strict=True):
            if now != before:
                became = "removed" if now is None else "replaced or emptied"
                raise FileFault(
                    name,
                    f"was {became} while it was open: put it back, or stop this server and start "
                    "it on the file that is to be used",
                )

    def check_lately(self) -> None:
        """The same for reads, unless it was checked a moment ago: what they find was true then."""
        if time.monotonic() - self._checked_at > UNCHECKED_SECONDS:
            self.check()

    def close(self) -> None:
        self._anchor.close()

    def _there(self) -> tuple[FileIdentity | None, ...]:
        return tuple(map(identity, self._names))


def identity(name: str) -> FileIdentity | None:
    try:
        found = os.stat(name)  # noqa: PTH116
    except OSError:
        return None
    is_log = name.endswith(BESIDE[1:])
    return FileIdentity(found.st_dev, found.st_ino, found.st_size == 0 and not is_log)


def revision(path: str) -> str | None:
    """The revision of the tables in the file; None where there are none. Raises FileFault."""
    try:
        if not Path(path).exists():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            return None
    except OSError as error:
        raise FileFault(path, f"cannot be made: {error}") from error
    with FaultsTold(path), closing(sqlite3.connect(path, timeout=OPENING_SECONDS)) as connection:
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
        if connection.execute(tables).fetchone() is None:
            return None
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(found[0]) if found else None
