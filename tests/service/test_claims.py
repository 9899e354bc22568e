"""Every claim is counted once, and recorded where there was a choice, whoever makes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.errors import DovetailError, StaleGeneration
from dovetail.core.request import Group, Request
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import Ledger, decisions
from dovetail.ledger.devices import DEVICE_CLASS, own_uuid
from dovetail.service import claims
from dovetail.service.claiming.best import BestClaim, claim_best
from dovetail.service.claims import AlreadyClaimed, DeviceTaken, NothingFits
from dovetail.service.device_claims import DeviceLedger
from dovetail.service.metrics import CLAIMS
from dovetail.service.recent_answers import RecentAnswers
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import make, new

RECORD_SECONDS = 10.0
OUTCOMES = ("granted", "refused", "conflict", "invalid", "failed")


def count(outcome: str) -> float:
    found: float = CLAIMS.labels(outcome)._value.get()
    return found


@contextmanager
def counted(**expected: int) -> Iterator[None]:
    """Just these outcomes, so often, and no others."""
    before = {outcome: count(outcome) for outcome in OUTCOMES}
    yield
    after = {outcome: count(outcome) - before[outcome] for outcome in OUTCOMES}
    assert {outcome: more for outcome, more in after.items() if more} == expected


def recorded(ledger: Ledger, expected: int) -> list[dict[str, Any]]:
    """So many decisions, newest first: nobody waits for the record of a refusal."""
    end = time.monotonic() + RECORD_SECONDS
    while True:
        rows = ledger.read(lambda tx: decisions.listing(tx, limit=100)).result()
        if len(rows) >= expected or time.monotonic() > end:
            assert len(rows) == expected
            return [{"consumer": row[2], **orjson.loads(row[3])} for row in rows]
        time.sleep(0.01)


def wanted(uuid: str, amount: int, **more: Any) -> Claim:
    return Claim(
        **{"consumer": new(), "project": "p", "user": "u", "allocations": {uuid: {"VCPU": amount}}}
        | more
    )


def take(ledger: Ledger, *claimed: Claim) -> None:
    asyncio.run(claims.claim(ledger, RecentAnswers(), claimed))


def test_a_claim_is_counted_by_how_it_ends(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=4).uuid
    with counted(granted=1):
        take(ledger, wanted(host, 1), wanted(host, 1))
    refused: list[tuple[str, Claim]] = [
        ("refused", wanted(host, 9)),
        ("conflict", wanted(host, 1, generation=7)),
        ("invalid", wanted(new(), 1)),
        ("invalid", wanted(host, 1, allocations={host: {"CUSTOM_NONE": 1}})),
    ]
    for outcome, claim in refused:
        with counted(**{outcome: 1}), pytest.raises(DovetailError):
            take(ledger, claim)
    assert recorded(ledger, 0) == [], "nobody asked where it fits: there was nothing to decide"


async def test_a_ledger_that_is_away_fails_claims(ledger: Ledger) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("away")

    with counted(failed=1), pytest.raises(RuntimeError):
        await claims.claim_named(ledger, broken, lambda _tx, _refusal: ())


def best(ledger: Ledger, amount: int, **more: Any) -> BestClaim:
    request = Request(groups=(Group(suffix="", resources={"VCPU": amount}),))
    return asyncio.run(
        claim_best(
            ledger,
            SnapshotKeeper(ledger),
            request,
            query=f"resources=VCPU:{amount}",
            claim=lambda allocations: wanted("", 0, allocations=allocations, **more),
            budget_seconds=10,
        )
    )


def test_the_best_place_is_claimed_counted_and_recorded(ledger: Ledger) -> None:
    host, consumer = make(ledger, "host", VCPU=4).uuid, new()
    with counted(granted=1):
        assert best(ledger, 3, consumer=consumer).allocations == {host: {"VCPU": 3}}
    with counted(refused=1), pytest.raises(NothingFits):
        best(ledger, 3)
    with counted(conflict=1), pytest.raises(StaleGeneration):
        best(ledger, 1, consumer=consumer)
    (decision,) = recorded(ledger, 1)
    assert (decision["consumer"], decision["outcome"]) == (consumer, "claimed")


@pytest.fixture
def devices(ledger: Ledger) -> DeviceLedger:
    fleet = DeviceLedger(ledger)
    found = [Device(node="n1", name=name, kind="gpu", units=1) for name in ("g0", "g1")]
    asyncio.run(fleet.publish("n1", found))
    return fleet


async def test_device_claims_are_recorded_and_counted(
    ledger: Ledger, devices: DeviceLedger
) -> None:
    pod, g0 = new(), DeviceHolding("g0", 1, "fast.gpu")
    with counted(granted=1):
        await devices.claim(pod, "default", "sa", "n1", [g0])
    (decision,) = recorded(ledger, 1)
    assert (decision["consumer"], decision["outcome"]) == (pod, "claimed")
    assert (decision["query"], decision["candidates"]) == ("class=fast.gpu:1", 1)
    assert decision["words"] == "Took 'g0' of node 'n1'."
    assert decision["chosen"]["allocations"] == {own_uuid("n1/g0"): {DEVICE_CLASS: 1}}
    with counted(conflict=1), pytest.raises(AlreadyClaimed):
        await devices.claim(pod, "default", "sa", "n1", [g0])
    assert recorded(ledger, 2)[0]["outcome"] == "refused"
    with counted(refused=1), pytest.raises(DeviceTaken):
        await devices.claim(new(), "default", "sa", "n1", [g0])
    taken = recorded(ledger, 3)[0]
    assert taken["outcome"] == "refused"
    assert "'g0' of node 'n1' has fewer than 1 units left" in taken["words"]


async def test_what_is_corrected_is_recorded_and_counted(
    ledger: Ledger, devices: DeviceLedger
) -> None:
    pod = new()
    for name in ("g0", "g1"):
        with counted(granted=1):
            await devices.correct(pod, "default", "sa", "n1", [DeviceHolding(name, 1)])
    assert [each["query"] for each in recorded(ledger, 2)] == ["class=g1:1", "class=g0:1"]


async def test_a_release_is_no_decision(ledger: Ledger, devices: DeviceLedger) -> None:
    pod = new()
    await devices.claim(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)])
    with counted():
        assert await devices.release(pod)
        assert not await claims.release(ledger, pod)
    recorded(ledger, 1)
