"""Group commit: one thread writes; operations that arrive together share a transaction.

Each operation has a savepoint of its own, so one that fails takes nothing else with it. A durable
commit waits for the disk; while it does, the next operations gather, and pay for it together.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from dovetail.ledger.database.protocol import Operation, T
from dovetail.telemetry.metrics import METRICS, POWERS_OF_TWO

BATCHES = METRICS.histogram(
    "commit_batch_size", "Writes that shared one commit (SQLite).", POWERS_OF_TWO
)

MAX_BATCH = 256


class Batch(Protocol):
    """What the committer needs of a database: one transaction with a savepoint per operation."""

    def begin(self) -> None: ...

    def attempt(self, operation: Operation[Any]) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


Waiting = tuple[Operation[Any], Future[Any]]


class Committer:
    """Runs operations one after the other on a connection that only its thread uses."""

    def __init__(self, connect: Callable[[], Batch]) -> None:
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._connect = connect
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[T]) -> Future[T]:
        future: Future[T] = Future()
        self._waiting.put((operation, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection = self._connect()
        more = True
        while more and (first := self._waiting.get()) is not None:
            more = self._commit(connection, first)
            # Else it stays until the next one comes, with a whole fleet that it may hold.
            del first
        connection.close()

    def _commit(self, connection: Batch, first: Waiting) -> bool:
        """Run `first` and whatever else has gathered; False when told to end."""
        done: list[tuple[Future[Any], Any]] = []
        taken = 1
        more = True
        item: Waiting | None = first
        try:
            connection.begin()
            while item is not None:
                operation, future = item
                if future.set_running_or_notify_cancel():
                    self._attempt(connection, operation, future, done)
                item, more = self._next(taken)
                taken += item is not None
            connection.commit()
        except Exception as error:  # noqa: BLE001
            connection.rollback()
            waiting = [future for future, _ in done]
            if item is not None and not item[1].done():
                waiting.append(item[1])
            for future in waiting:
                future.set_exception(error)
            return more
        BATCHES.observe(taken)
        for future, result in done:
            future.set_result(result)
        return more

    @staticmethod
    def _attempt(
        connection: Batch,
        operation: Operation[Any],
        future: Future[Any],
        done: list[tuple[Future[Any], Any]],
    ) -> None:
        try:
            done.append((future, connection.attempt(operation)))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)

    def _next(self, taken: int) -> tuple[Waiting | None, bool]:
        if taken >= MAX_BATCH:
            return None, True
        try:
            item = self._waiting.get_nowait()
        except queue.Empty:
            return None, True
        return item, item is not None
