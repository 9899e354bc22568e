"""The keeper: shares looks at the change log, and never shows an old state as new."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dovetail.core.request import Group, Request
from dovetail.engine import search
from dovetail.engine.snapshot import Snapshot
from dovetail.ledger import Cursor, Delta, Ledger, open_ledger
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import claim, make


class CountingLedger:
    """A ledger that counts how often it is asked what is new."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.polls = 0

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        self.polls += 1
        return self._ledger.poll(cursor)

    def glance(self, cursor: Cursor) -> Delta | None:
        return self._ledger.glance(cursor)


def fits(snapshot: Snapshot, amount: int) -> int:
    group = Group(suffix="1", resources={"VCPU": amount})
    return len(list(search(snapshot, Request(groups=(group,)))))


async def test_concurrent_calls_share_a_look(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/x.db")
    counting: Any = CountingLedger(ledger)

    keeper = SnapshotKeeper(counting)
    await asyncio.gather(*(keeper.fresh() for _ in range(100)))
    ledger.close()
    assert counting.polls == 1


async def test_a_claim_or_two_is_taken_in_without_waiting_for_a_thread(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/x.db")
    host = make(ledger, "host", VCPU=10)
    counting: Any = CountingLedger(ledger)
    keeper = SnapshotKeeper(counting)
    await keeper.fresh()
    for taken in range(1, 4):
        claim(ledger, (host, {"VCPU": 1}))
        snapshot = await keeper.fresh()
        assert (fits(snapshot, 10 - taken), fits(snapshot, 11 - taken)) == (1, 0)
    assert counting.polls == 1
    make(ledger, "other", VCPU=10)
    assert fits(await keeper.fresh(), 10) == 1
    ledger.close()
    assert counting.polls == 2


async def test_every_call_sees_what_was_written_before_it(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=10)

    keeper = SnapshotKeeper(ledger)
    for taken in range(1, 6):
        claim(ledger, (host, {"VCPU": 1}))
        snapshots = await asyncio.gather(*(keeper.fresh() for _ in range(3)))
        for snapshot in snapshots:
            assert fits(snapshot, 10 - taken) == 1
            assert fits(snapshot, 11 - taken) == 0


async def test_a_held_snapshot_stands_still(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=10)

    keeper = SnapshotKeeper(ledger)
    old = await keeper.fresh()
    with keeper.held(old):
        claim(ledger, (host, {"VCPU": 5}))
        new = await keeper.fresh()
        assert (fits(old, 10), fits(new, 10)) == (1, 0)
    assert await keeper.fresh() is new


async def test_who_holds_a_state_that_is_past_holds_nothing_up(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=10)

    keeper = SnapshotKeeper(ledger)
    old = await keeper.fresh()
    with keeper.held(old):
        claim(ledger, (host, {"VCPU": 5}))
        new = await keeper.fresh()
    with keeper.held(old):
        pass
    claim(ledger, (host, {"VCPU": 1}))
    assert await keeper.fresh() is new


async def test_large_changes_are_taken_in_beside_the_event_loop(ledger: Ledger) -> None:
    """A whole forest, and many trees at once; those who read meanwhile have the old state."""
    keeper = SnapshotKeeper(ledger)
    with patch("dovetail.service.snapshots.MOST_ROWS_AT_ONCE", 2):
        threads = [await threads_of_change(keeper)]
        for number in range(5):
            make(ledger, f"host{number}", VCPU=10)
        before = await keeper.fresh()
        assert fits(before, 10) == 5
        with keeper.held(before):
            for number in range(5, 9):
                make(ledger, f"host{number}", VCPU=10)
            threads.append(await threads_of_change(keeper))
            assert fits(before, 10) == 5
        assert fits(await keeper.fresh(), 10) == 9
        make(ledger, "last", VCPU=10)
        threads.append(await threads_of_change(keeper))
    here = threading.get_ident()
    assert [here in idents for idents in threads] == [False, False, True]


async def threads_of_change(keeper: SnapshotKeeper) -> set[int]:
    """Where rows were appended during a look."""
    seen: set[int] = set()
    append = Snapshot._append

    def noting(snapshot: Snapshot, *rest: Any, **named: Any) -> None:
        seen.add(threading.get_ident())
        append(snapshot, *rest, **named)

    with patch.object(Snapshot, "_append", noting):
        await keeper.fresh()
    return seen


async def test_a_forest_that_was_taken_in_is_held_by_nobody(ledger: Ledger) -> None:
    """Its memory is given back then: whoever still knew its columns would keep them."""
    make(ledger, "host", VCPU=10)
    told: list[Delta] = []

    class TellingLedger(CountingLedger):
        def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
            polled = super().poll(cursor)
            delta = polled.result()
            assert delta is not None
            told.append(delta)
            return polled

    telling: Any = TellingLedger(ledger)
    assert fits(await SnapshotKeeper(telling).fresh(), 10) == 1
    (delta,) = told
    assert delta.forest is not None
    assert (delta.forest.providers, delta.forest.inventories, delta.forest.traits) == ((), (), ())
