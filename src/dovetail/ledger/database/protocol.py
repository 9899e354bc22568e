"""Port of the ledger: what the rest of Dovetail may ask of any database; sqlite and postgres do it.

A Ledger runs operations, each a function of one Transaction: `write` in a durable transaction of
its own (all or nothing), `read` in a consistent view. `poll` tells what changed since a cursor.
All return futures, so that callers wait without holding a thread; each is done within the time that
`LedgerSettings.answer_seconds` gives, whatever becomes of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, Protocol, TypeVar

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.core.tables import Names, TableColumns, Tables

T = TypeVar("T")
Row = tuple[Any, ...]
Operation = Callable[["Transaction"], T]
Cursor = str
"""Where a reader stands in the change log; only the ledger that gave it can read it."""


Log = Sequence[tuple[int, int]]
"""Rows of the change log: kind, root id."""
STREAMED_ROWS = 20_000
"""Rows of a large table that are held at once."""
Look = Callable[["Transaction", Log | None], T]
"""Reads what it wants to know of the changes; None: anything may have changed."""


class LedgerBusy(DovetailError):
    """The database was not to be had; nothing was written, and trying again is safe."""


class RowsContended(LedgerBusy):
    """Others held or kept changing the same rows; the ledger itself is well."""


class OutcomeUnknown(LedgerBusy):
    """The database was told to commit and did not answer: the write may stand, or not.

    Nobody repeats it blindly; whoever asked looks first.
    """


class Change(IntEnum):
    """What a row of the change log says has to be read again."""

    TREE = 0
    USAGE = 1
    NAMES = 2
    CLASSES = 3


class Delta(msgspec.Struct):
    """What a snapshot has to take in to be true at `cursor`."""

    cursor: Cursor
    forest: TableColumns | None = None
    """The whole forest, instead of what changed."""
    trees: Tables | None = None
    removed_roots: Sequence[int] = ()
    usage: Sequence[tuple[int, int, int]] = ()
    """provider id, class id, used"""
    names: Names | None = None
    definitions: Mapping[str, str] | None = None
    """Of device classes: the document of each by name."""

    @property
    def everything(self) -> bool:
        return self.forest is not None


class Transaction(Protocol):
    """One unit of work. Statements use `?` for parameters on every database."""

    now: int
    """Unix seconds, the same for all rows the operation writes."""
    for_update: str
    """What to append to a SELECT whose rows must not change until the end."""
    writes_in_queries: bool
    """Whether one statement may hold several writes (`WITH ... AS (INSERT ...)`)."""

    def for_update_of(self, *tables: str) -> str:
        """The same for a SELECT from several tables, of which these are meant."""
        ...

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]: ...

    def stream(self, statement: str) -> Iterator[list[Row]]:
        """The rows of a large table, some thousand at a time; nothing else is asked meanwhile."""
        ...

    def row(self, statement: str, parameters: Sequence[Any] = ()) -> Row | None: ...

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute and return how many rows were touched."""
        ...

    def many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None: ...

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert a great many rows in the database's fastest way."""
        ...

    def reserve_ids(self, table: str, count: int) -> int:
        """The first of `count` consecutive ids that nobody else will get."""
        ...

    def changed(self, change: Change, root_id: int = 0) -> None:
        """Note a change for the log; written with the operation."""
        ...

    def lift_timeouts(self) -> None:
        """What follows may take long, and is not cut off: bulk work says so before it begins."""
        ...


class Ledger(Protocol):
    def write(self, operation: Operation[T]) -> Future[T]: ...

    def read(self, operation: Operation[T]) -> Future[T]: ...

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        """What changed since `cursor` (None: everything); None if nothing did."""
        ...

    def glance(self, cursor: Cursor) -> Delta | None:
        """What changed since `cursor`, read in the caller's own thread; its cursor is the same if
        nothing did. None where one would have to wait for it, or to read much: `poll` does."""
        ...

    def follow(self, cursor: Cursor | None, look: Look[T]) -> Future[tuple[Cursor, T]]:
        """What `look` makes of the changes since `cursor`, and where the log stands then."""
        ...

    def check(self) -> Future[None]:
        """Fails with LedgerBusy unless the ledger takes writes, as far as can be known.

        Where the last write failed, a write that changes nothing is tried.
        """
        ...

    def close(self) -> None: ...
