"""Calls of the ledger with a deadline: no caller waits longer, whatever the driver's thread does.

Both ledgers make a `LedgerCall` of every operation and run it in threads of their own. `Watchdog`,
one thread for each ledger, fails the future of a call whose time is over and cuts the connection
that its thread is waiting for, so that the thread comes back. What the caller is told is exact:

    waiting      nothing was done, and nothing will be                      LedgerBusy
    running      nothing was committed: from here on `begin_commit` refuses LedgerBusy
    committing   the database was told to commit, and has not answered     OutcomeUnknown
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum, auto
from typing import Any, Generic, Protocol

from dovetail.ledger.database.protocol import LedgerBusy, OutcomeUnknown, T

TICKS_PER_DEADLINE = 20
LONGEST_TICK_SECONDS = 0.5
"""How much later than its deadline a call may be given up."""


class CuttableLine(Protocol):
    """What a call waits for: a connection that others can cut."""

    def cut(self) -> None:
        """Have the thread that waits for it fail at once. Any thread may call it."""
        ...

    def silent_seconds(self) -> float:
        """Since a byte was last sent or received; 0 where that is not to be known."""
        ...


class CallStage(Enum):
    WAITING = auto()
    RUNNING = auto()
    COMMITTING = auto()
    OVER = auto()


class GivenUp(LedgerBusy):
    """Raised in the thread of a call that was given up: its caller has been answered."""

    def __init__(self) -> None:
        super().__init__("its caller does not wait any more")


class LedgerCall(Generic[T]):
    """One operation on its way. All but `deadline` is guarded: two threads may end it at once."""

    def __init__(self, deadline: float, forget: Callable[[LedgerCall[Any]], None]) -> None:
        self.future: Future[T] = Future()
        self.deadline = deadline
        self._forget = forget
        self._stage = CallStage.WAITING
        self._line: CuttableLine | None = None
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        return self._stage is CallStage.OVER

    def begin(self) -> bool:
        """To be run now, maybe once more; False if nobody waits for it any more."""
        with self._lock:
            if self._stage is CallStage.RUNNING:
                return True
            if self._stage is CallStage.WAITING and self.future.set_running_or_notify_cancel():
                self._stage = CallStage.RUNNING
                return True
            self._end()
            return False

    def waits_for(self, line: CuttableLine | None) -> None:
        """From now on its thread waits for this connection. Raises GivenUp."""
        with self._lock:
            self._line = line
            if line is not None and self._stage is CallStage.OVER:
                raise GivenUp

    def lift(self) -> None:
        """It may take any time from here on, as long as its connection does not fall silent."""
        self.deadline = float("inf")

    def begin_commit(self) -> None:
        """The last moment in which it is certain that nothing was done. Raises GivenUp."""
        with self._lock:
            if self._stage is CallStage.OVER:
                raise GivenUp
            self._stage = CallStage.COMMITTING

    def succeed(self, result: T) -> None:
        with self._lock:
            if self._end():
                self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        with self._lock:
            if self._end():
                self.future.set_exception(error)

    def is_overdue(self, now: float, silence_seconds: float) -> bool:
        if self.deadline != float("inf"):
            return now >= self.deadline
        with self._lock:
            return self._line is not None and self._line.silent_seconds() > silence_seconds

    def give_up(self) -> None:
        """Answer its caller, and free its thread."""
        with self._lock:
            stage, line = self._stage, self._line
            if stage is CallStage.WAITING and not self.future.set_running_or_notify_cancel():
                self._end()
            elif self._end():
                self.future.set_exception(
                    OutcomeUnknown("the database did not answer in time when told to commit")
                    if stage is CallStage.COMMITTING
                    else LedgerBusy("the database did not answer in time")
                )
            if line is not None:
                # Held while it is cut: its thread cannot have given it to another call.
                line.cut()

    def _end(self) -> bool:
        if self._stage is CallStage.OVER:
            return False
        self._stage = CallStage.OVER
        self._forget(self)
        return True


class Watchdog:
    """The open calls of one ledger, and the thread that gives up those that are overdue."""

    def __init__(self, answer_seconds: float, silence_seconds: float) -> None:
        self._answer_seconds, self._silence_seconds = answer_seconds, silence_seconds
        self._tick = min(answer_seconds / TICKS_PER_DEADLINE, LONGEST_TICK_SECONDS)
        self._open: set[LedgerCall[Any]] = set()
        self._is_needed, self._is_closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ledger-watchdog", daemon=True)
        self._thread.start()

    def call(self) -> LedgerCall[Any]:
        """A new call, whose time runs from now."""
        made: LedgerCall[Any] = LedgerCall(
            time.monotonic() + self._answer_seconds, self._open.discard
        )
        self._open.add(made)
        if not self._is_needed.is_set():
            self._is_needed.set()
        return made

    def close(self) -> None:
        self._is_closed.set()
        self._is_needed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_closed.wait(self._tick):
            if not self._open:
                self._is_needed.clear()
                # One that was added since then has set it again, or is seen here.
                if not self._open and not self._is_closed.is_set():
                    self._is_needed.wait()
            now = time.monotonic()
            for each in self._open.copy():
                if each.is_overdue(now, self._silence_seconds):
                    each.give_up()


def run(call: LedgerCall[T], work: Callable[[], T]) -> None:
    """Do the work of a call in the thread of the caller, and end the call by how it ends."""
    if not call.begin():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001
        call.fail(error)
    else:
        call.succeed(result)
