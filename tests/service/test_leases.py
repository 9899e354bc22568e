"""Leases in the ledger: one holder at a time, and nothing is written by one who lost it."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.database import leases
from dovetail.ledger.database.leases import LeaseLost, LeaseRow
from dovetail.service.leases import LeaseDurations, LedgerLease

SHORT = LeaseDurations(lease_seconds=0.6, hold_seconds=0.4, retry_seconds=0.05)


class Worker:
    def __init__(self, lease: LedgerLease) -> None:
        self.lease = lease
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self) -> None:
        self.started.set()
        self.ended.clear()
        try:
            await asyncio.Event().wait()
        finally:
            self.started.clear()
            self.ended.set()


def candidate(ledger: Ledger, holder: str) -> tuple[Worker, asyncio.Task[None]]:
    lease = LedgerLease(ledger, "mirror", holder, SHORT)
    worker = Worker(lease)
    return worker, asyncio.create_task(lease.run_while_held(worker))


async def stop(*tasks: asyncio.Task[None]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_of_two_works_and_the_other_goes_on_when_it_stops(ledger: Ledger) -> None:
    one, first = candidate(ledger, "one")
    await one.started.wait()
    two, second = candidate(ledger, "two")
    await asyncio.sleep(1.0)
    assert one.lease.is_held
    assert not two.started.is_set()
    await stop(first)
    await two.started.wait()
    assert not one.lease.is_held
    await stop(second)
    assert ledger.read(lambda tx: leases.find(tx, "mirror")).result() is None


async def test_a_lease_whose_holder_is_silent_is_taken_over_whatever_its_clock_says(
    ledger: Ledger,
) -> None:
    dead = LeaseRow("dead", 99_999_999_999)
    ledger.write(lambda tx: leases.take(tx, "mirror", dead)).result()
    two, task = candidate(ledger, "two")
    await two.started.wait()
    await stop(task)


async def test_what_one_writes_who_lost_the_lease_is_not_written(ledger: Ledger) -> None:
    one, task = candidate(ledger, "one")
    await one.started.wait()

    def usurp(tx: Transaction) -> None:
        tx.run("UPDATE leases SET holder = 'two' WHERE name = 'mirror'")

    def mark(tx: Transaction) -> None:
        tx.run("INSERT INTO traits (name, created_at) VALUES ('CUSTOM_X', 0)")

    await asyncio.wrap_future(ledger.write(usurp))
    with pytest.raises(LeaseLost):
        await asyncio.wrap_future(ledger.write(one.lease.fenced(mark)))
    assert (
        ledger.read(lambda tx: tx.row("SELECT 1 FROM traits WHERE name='CUSTOM_X'")).result()
        is None
    )
    await one.ended.wait()
    assert not one.lease.is_held
    await stop(task)


async def test_a_holder_that_cannot_renew_stops_before_others_start(ledger: Ledger) -> None:
    now = 0.0
    lease = LedgerLease(ledger, "mirror", "one", clock=lambda: now)
    assert await lease._try()
    assert lease.is_held
    now = 10.0
    assert not lease.is_held
    now = 14.0
    other = LedgerLease(ledger, "mirror", "two", clock=lambda: now)
    assert not await other._try(), "it has only just seen the lease"
    now = 28.0
    assert not await other._try()
    now = 29.0
    assert await other._try()
    assert not await lease._try()


async def test_failures_of_the_work_are_raised(ledger: Ledger) -> None:
    lease = LedgerLease(ledger, "mirror", "one", SHORT)

    async def work() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await lease.run_while_held(work)
    assert ledger.read(lambda tx: leases.find(tx, "mirror")).result() is None
