"""Group commit: one thread writes; operations that arrive together share a transaction.

Each operation has a savepoint of its own, so one that fails takes nothing else with it. A durable
commit waits for the disk; while it does, the next operations gather, and pay for it together.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from dovetail.ledger.database.calls import LedgerCall
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.database.sqlite_file import FileFault
from dovetail.telemetry.metrics import METRICS, POWERS_OF_TWO

BATCHES = METRICS.histogram(
    "commit_batch_size", "Writes that shared one commit (SQLite).", POWERS_OF_TWO
)

MAX_BATCH = 256


class NeedsOwnCommit(Exception):
    """Raised by an operation that takes long: those that share its commit would have to wait."""


class Batch(Protocol):
    """What the committer needs of a database: one transaction with a savepoint per operation.

    Raises LedgerBusy where the database cannot be used; then nothing of the batch was written, or,
    with OutcomeUnknown, it is not known.
    """

    def begin(self) -> None: ...

    def attempt(
        self, operation: Operation[Any], call: LedgerCall[Any], *, shares_commit: bool
    ) -> Any:
        """Run one operation; its own errors leave the others untouched."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


Waiting = tuple[Operation[Any], LedgerCall[Any]]


class Committer:
    """Runs operations one after the other on a connection that only its thread uses."""

    def __init__(self, connect: Callable[[], Batch]) -> None:
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._postponed: Waiting | None = None
        """One that is to have the next commit for itself."""
        self._connect = connect
        self._connection: Batch | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[T], call: LedgerCall[T]) -> None:
        self._waiting.put((operation, call))

    def close(self) -> None:
        """Finish what was submitted, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        more = True
        while more and (first := self._waiting.get()) is not None:
            more = self._commit(first)
            # Else it stays until the next one comes, with a whole fleet that it may hold.
            del first
            while self._postponed is not None:
                alone, self._postponed = self._postponed, None
                self._commit(alone, shared=False)
                del alone
        self._disconnect()

    def _commit(self, first: Waiting, *, shared: bool = True) -> bool:
        """Run `first` and whatever else has gathered; False when told to end.

        Whatever happens, all who took part are answered, and the thread goes on.
        """
        done: list[tuple[LedgerCall[Any], Any]] = []
        taken = 1
        more = True
        item: Waiting | None = first
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.begin()
            while item is not None:
                self._attempt(self._connection, item, done, shared=shared)
                item, more = self._next(taken) if shared and not self._postponed else (None, True)
                taken += item is not None
            self._connection.commit()
        except BaseException as error:  # noqa: BLE001
            self._disconnect()
            for call in [call for call, _ in done] + ([] if item is None else [item[1]]):
                call.fail(error)
            return more
        BATCHES.observe(taken)
        for call, result in done:
            call.succeed(result)
        return more

    def _attempt(
        self,
        connection: Batch,
        item: Waiting,
        done: list[tuple[LedgerCall[Any], Any]],
        *,
        shared: bool,
    ) -> None:
        operation, call = item
        if not call.begin():
            return
        try:
            done.append((call, connection.attempt(operation, call, shares_commit=shared)))
        except NeedsOwnCommit:
            self._postponed = item
        except FileFault:
            raise
        except Exception as error:  # noqa: BLE001
            call.fail(error)

    def _disconnect(self) -> None:
        """What became of its transaction is settled by closing it; the next batch has a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.rollback()
            with suppress(Exception):
                connection.close()

    def _next(self, taken: int) -> tuple[Waiting | None, bool]:
        if taken >= MAX_BATCH:
            return None, True
        try:
            item = self._waiting.get_nowait()
        except queue.Empty:
            return None, True
        return item, item is not None
