"""Claims of the best place at the same time: no herd, no false refusal, nothing given twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from dovetail.core.claim import Claim
from dovetail.core.errors import DovetailError, StaleGeneration
from dovetail.core.provider import Provider
from dovetail.core.request import Group, Request
from dovetail.ledger import Cursor, Delta, Ledger, claims
from dovetail.ledger.database.protocol import Operation, T
from dovetail.service import asking
from dovetail.service.claiming.best import BestClaim, claim_best
from dovetail.service.claims import NothingFits, Outrun
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import claim, make, new, summed

ONE = Request(groups=(Group(suffix="", resources={"VCPU": 1}),))


async def best(
    ledger: Any, keeper: SnapshotKeeper, request: Request = ONE, seconds: float = 60, **more: Any
) -> BestClaim:
    def wanted(allocations: dict[str, dict[str, int]]) -> Claim:
        given = {"consumer": new(), "project": "p", "user": "u", "allocations": allocations}
        return Claim(**given | more)

    return await claim_best(
        ledger, keeper, request, query="resources=VCPU:1", claim=wanted, budget_seconds=seconds
    )


def hosts(ledger: Ledger, count: int) -> list[Provider]:
    return [make(ledger, f"host{number}", VCPU=1) for number in range(count)]


def places(taken: Iterable[BestClaim]) -> list[str]:
    return sorted(uuid for each in taken for uuid in each.allocations)


class GatedLedger:
    """A ledger whose writes wait at a gate, and are counted."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.gate = threading.Event()
        self.gate.set()
        self.writes = 0

    def write(self, operation: Operation[T]) -> Future[T]:
        self.writes += 1
        if self.gate.is_set():
            return self._ledger.write(operation)
        outcome: Future[T] = Future()

        def pass_gate() -> None:
            self.gate.wait(timeout=60)
            try:
                outcome.set_result(self._ledger.write(operation).result())
            except Exception as error:  # noqa: BLE001
                outcome.set_exception(error)

        threading.Thread(target=pass_gate, daemon=True).start()
        return outcome

    def poll(self, cursor: Cursor | None) -> Future[Delta | None]:
        return self._ledger.poll(cursor)

    def glance(self, cursor: Cursor) -> Delta | None:
        return self._ledger.glance(cursor)


async def until_written(ledger: GatedLedger, writes: int) -> None:
    while ledger.writes < writes:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("replicas", [1, 2])
async def test_nobody_is_refused_while_units_are_free(ledger: Ledger, replicas: int) -> None:
    fleet = hosts(ledger, 50)
    keepers = [SnapshotKeeper(ledger) for _ in range(replicas)]

    async def client(number: int) -> list[BestClaim]:
        keeper = keepers[number % replicas]
        return [await best(ledger, keeper) for _ in range(3)]

    done = await asyncio.gather(*(client(number) for number in range(16)))
    taken = places(each for one in done for each in one)
    assert len(set(taken)) == len(taken) == 48
    assert sum(summed(ledger).values()) == 48
    assert set(taken) <= {host.uuid for host in fleet}


async def test_the_last_units_go_to_as_many_as_there_are(ledger: Ledger) -> None:
    hosts(ledger, 5)
    keepers = [SnapshotKeeper(ledger), SnapshotKeeper(ledger)]
    done = await asyncio.gather(
        *(best(ledger, keepers[number % 2]) for number in range(12)), return_exceptions=True
    )
    granted = [each for each in done if isinstance(each, BestClaim)]
    assert len(set(places(granted))) == len(granted) == 5
    assert all(isinstance(each, NothingFits) for each in done if each not in granted)


async def test_what_is_being_claimed_counts_at_once(ledger: Ledger) -> None:
    fleet = hosts(ledger, 3)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    slow.gate.clear()
    under_way = [asyncio.create_task(best(slow, keeper)) for _ in fleet]
    await until_written(slow, 3)
    slow.gate.set()
    assert places(await asyncio.gather(*under_way)) == sorted(host.uuid for host in fleet)
    assert slow.writes == 3, "each took a place of its own at the first attempt"


async def test_who_asks_for_candidates_sees_what_is_written(ledger: Ledger) -> None:
    (host,) = hosts(ledger, 1)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    slow.gate.clear()
    under_way = asyncio.create_task(best(slow, keeper))
    await until_written(slow, 1)
    _, found = await asking.find(keeper, ONE, 10)
    assert len(found) == 1, "it may still fail"
    slow.gate.set()
    assert places([await under_way]) == [host.uuid]
    _, found = await asking.find(keeper, ONE, 10)
    assert not len(found)


async def test_a_claim_under_way_that_fails_refuses_nobody(ledger: Ledger) -> None:
    elsewhere = make(ledger, "elsewhere", MEMORY_MB=1)
    holder = claim(ledger, (elsewhere, {"MEMORY_MB": 1}))
    (host,) = hosts(ledger, 1)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    slow.gate.clear()
    failing = asyncio.create_task(best(slow, keeper, consumer=holder))
    await until_written(slow, 1)
    waiting = asyncio.create_task(best(slow, keeper))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done, "the only unit is neither taken nor free yet"
    slow.gate.set()
    with pytest.raises(StaleGeneration):
        await failing
    assert places([await waiting]) == [host.uuid]


async def test_who_waits_for_a_claim_that_is_granted_is_refused(ledger: Ledger) -> None:
    hosts(ledger, 1)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    slow.gate.clear()
    first = asyncio.create_task(best(slow, keeper))
    await until_written(slow, 1)
    second = asyncio.create_task(best(slow, keeper))
    await asyncio.sleep(0.05)
    slow.gate.set()
    await first
    with pytest.raises(NothingFits):
        await second
    assert slow.writes == 1


async def test_who_waits_longer_than_a_claim_may_take_is_not_refused(ledger: Ledger) -> None:
    hosts(ledger, 1)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    slow.gate.clear()
    first = asyncio.create_task(best(slow, keeper))
    await until_written(slow, 1)
    with pytest.raises(Outrun):
        await best(slow, keeper, seconds=0.1)
    slow.gate.set()
    await first


async def test_where_others_were_faster_the_next_that_was_found_is_taken(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = hosts(ledger, 4)
    keeper = SnapshotKeeper(ledger)
    searched: list[Any] = []
    find = asking.find_for

    async def meanwhile(*args: Any, **more: Any) -> Any:
        found = await find(*args, **more)
        if not searched:
            for host in fleet[:3]:
                claim(ledger, (host, {"VCPU": 1}))
        searched.append(found)
        return found

    monkeypatch.setattr(asking, "find_for", meanwhile)
    assert places([await best(ledger, keeper)]) == [fleet[3].uuid]
    assert len(searched) == 1


async def test_what_a_group_takes_twice_of_one_provider_is_added_up(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=4)
    slow = GatedLedger(ledger)
    keeper = SnapshotKeeper(slow)  # type: ignore[arg-type]
    groups = tuple(Group(suffix=f"_{name}", resources={"VCPU": 2}) for name in "AB")
    slow.gate.clear()
    first = asyncio.create_task(best(slow, keeper, Request(groups=groups)))
    await until_written(slow, 1)
    second = asyncio.create_task(best(slow, keeper))
    await asyncio.sleep(0.05)
    slow.gate.set()
    assert (await first).allocations == {host.uuid: {"VCPU": 4}}
    with pytest.raises(NothingFits):
        await second


async def test_names_are_those_of_the_transaction(ledger: Ledger) -> None:
    (host,) = hosts(ledger, 1)
    assert (await best(ledger, SnapshotKeeper(ledger))).names == {host.uuid: "host0"}


async def test_the_ledger_is_not_asked_again_after_the_commit(ledger: Ledger) -> None:
    """What is committed is answered, whatever becomes of the database then."""
    hosts(ledger, 1)

    class Dying(GatedLedger):
        def read(self, _operation: Any) -> Any:
            raise AssertionError("away")

    dying = Dying(ledger)
    keeper = SnapshotKeeper(dying)  # type: ignore[arg-type]
    assert (await best(dying, keeper)).decision


def test_a_claim_of_nothing_known_is_told_apart(ledger: Ledger) -> None:
    """What one statement cannot find, the others name."""
    (host,) = hosts(ledger, 1)
    for allocations, word in (
        ({new(): {"VCPU": 1}}, "does not exist"),
        ({host.uuid: {"CUSTOM_NONE": 1}}, "CUSTOM_NONE"),
        ({host.uuid: {"DISK_GB": 1}}, "DISK_GB"),
        ({host.uuid: {"VCPU": 2}}, "VCPU"),
    ):
        wanted = Claim(consumer=new(), project="p", user="u", allocations=allocations)
        with pytest.raises(DovetailError, match=word):
            ledger.write(partial(claims.take, claim=wanted, document="{}")).result()
    assert summed(ledger) == {}
