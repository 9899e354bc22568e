"""Calls with a deadline: what their callers are told, and when a commit is refused."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from dovetail.ledger.database.calls import GivenUp, LedgerCall, Watchdog, run
from dovetail.ledger.database.protocol import LedgerBusy, OutcomeUnknown

FOREVER = 60


class Line:
    """A connection that is silent until it is cut."""

    def __init__(self, silent_seconds: float = 0.0) -> None:
        self._silent_seconds = silent_seconds
        self.is_cut = threading.Event()

    def cut(self) -> None:
        self.is_cut.set()

    def silent_seconds(self) -> float:
        return self._silent_seconds


Make = Callable[[float], Watchdog]


@pytest.fixture
def watchdog() -> Iterator[Make]:
    made: list[Watchdog] = []

    def make(answer_seconds: float) -> Watchdog:
        made.append(Watchdog(answer_seconds, silence_seconds=5.0))
        return made[-1]

    yield make
    for each in made:
        each.close()


def refused(call: LedgerCall[str]) -> type[BaseException]:
    error = call.future.exception(FOREVER)
    assert error is not None
    return type(error)


def test_one_that_waits_too_long_is_never_begun(watchdog: Make) -> None:
    call = watchdog(0.05).call()
    assert refused(call) is LedgerBusy
    assert not call.begin()


def test_one_that_runs_too_long_is_cut_off_and_must_not_commit(watchdog: Make) -> None:
    call, line = watchdog(0.05).call(), Line()
    assert call.begin()
    call.waits_for(line)
    assert refused(call) is LedgerBusy
    assert line.is_cut.wait(FOREVER)
    with pytest.raises(GivenUp):
        call.begin_commit()
    call.succeed("too late")
    assert refused(call) is LedgerBusy


def test_one_that_commits_for_too_long_has_an_unknown_outcome(watchdog: Make) -> None:
    call, line = watchdog(0.05).call(), Line()
    assert call.begin()
    call.waits_for(line)
    call.begin_commit()
    assert refused(call) is OutcomeUnknown
    assert line.is_cut.wait(FOREVER)


def test_a_connection_that_was_given_back_is_not_cut(watchdog: Make) -> None:
    call, line = watchdog(0.05).call(), Line()
    assert call.begin()
    call.waits_for(line)
    call.waits_for(None)
    assert refused(call) is LedgerBusy
    assert not line.is_cut.is_set()
    with pytest.raises(GivenUp):
        call.waits_for(line)


@pytest.mark.parametrize(("silent_seconds", "is_given_up"), [(1.0, False), (6.0, True)])
def test_bulk_work_is_given_up_for_silence_alone(
    watchdog: Make, silent_seconds: float, is_given_up: bool
) -> None:
    watched = watchdog(0.05)
    bulk, other = watched.call(), watched.call()
    line = Line(silent_seconds)
    assert bulk.begin()
    bulk.waits_for(line)
    bulk.lift()
    assert refused(other) is LedgerBusy
    if is_given_up:
        assert refused(bulk) is LedgerBusy
    else:
        bulk.succeed("done")
        assert bulk.future.result(FOREVER) == "done"
    assert line.is_cut.is_set() == is_given_up


def test_one_whose_caller_left_before_it_began_is_not_begun(watchdog: Make) -> None:
    call = watchdog(FOREVER).call()
    assert call.future.cancel()
    done: list[str] = []
    run(call, lambda: done.append("done"))
    assert not done


def test_those_that_are_over_are_forgotten_at_once(watchdog: Make) -> None:
    """Without waiting for a collection of cycles: there may be thousands a second."""
    watched = watchdog(FOREVER)
    gc.disable()
    try:
        call = watched.call()
        seen = weakref.ref(call)
        run(call, lambda: "done")
        del call
        assert seen() is None
    finally:
        gc.enable()
