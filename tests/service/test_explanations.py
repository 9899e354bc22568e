"""Whom to move among hosts that share a pool: of whom that is asked, and what time is left for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dovetail.core.request import Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import Diagnosis, Work
from dovetail.engine.moves import HeldRow, LeavingSearch
from dovetail.service.explanations import diagnose, with_moves
from dovetail.service.time_budget import OutOfTime
from tests.engine.answers import loaded
from tests.engine.forest import CLASSES, SHARING, Inventory, grow, node

HOSTS, EACH = 120, 40
VCPU, DISK = CLASSES.index("VCPU"), CLASSES.index("DISK_GB")
POOL = 1
SECONDS = 60.0


def fleet(pool: int) -> Snapshot:
    """Full hosts that have their disks from a pool of this size."""
    shared = node(
        "pool", DISK_GB=Inventory(pool, used=HOSTS * EACH), traits=[SHARING], aggregates=["a"]
    )
    full = Inventory(EACH, used=EACH)
    return loaded(
        grow(shared, *(node(f"h{at}", VCPU=full, aggregates=["a"]) for at in range(HOSTS)))
    )


class Records:
    """What consumers hold; and of which roots it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def holders(self, root_ids: Sequence[int]) -> list[HeldRow]:
        self.asked += root_ids
        return [
            row
            for host in range(HOSTS)
            for at in range(EACH)
            for row in (
                (f"c{host}-{at}", POOL + 1 + host, VCPU, 1),
                (f"c{host}-{at}", POOL, DISK, 1),
            )
            if POOL in root_ids or POOL + 1 + host in root_ids
        ]

    async def decisions(self, _: Sequence[str]) -> list[tuple[str, str]]:
        return []

    async def request_of(self, _: str) -> Request | None:
        return None


def moved(snapshot: Snapshot, records: Records, **resources: int) -> Diagnosis:
    request = Request(groups=(Group(resources=resources),))

    async def work() -> Diagnosis:
        found = await diagnose(snapshot, request, SECONDS)
        return await with_moves(found, snapshot, request, records, SECONDS)

    return asyncio.run(work())


def test_who_holds_of_a_pool_that_has_room_is_not_looked_at() -> None:
    records = Records()
    found = moved(fleet(pool=10**6), records, VCPU=1, DISK_GB=1)
    assert found.moves
    assert all(len(plan.moves) == 1 and plan.leaving.smallest for plan in found.moves)
    assert POOL not in records.asked


def test_who_holds_of_a_pool_that_is_full_is() -> None:
    records = Records()
    found = moved(fleet(pool=HOSTS * EACH), records, VCPU=1, DISK_GB=1)
    assert found.moves
    assert all(len(plan.moves) == 1 and plan.leaving.smallest for plan in found.moves)
    assert POOL in records.asked


def test_as_many_leave_as_a_pool_is_short_of() -> None:
    found = moved(fleet(pool=HOSTS * EACH), Records(), VCPU=1, DISK_GB=20)
    assert found.moves
    assert {len(plan.moves) for plan in found.moves} == {20}
    assert all(plan.leaving.smallest for plan in found.moves)


def test_where_time_is_short_some_plan_is_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the smallest sets has no time at all; those that are shrunk are told."""

    def endless(_: LeavingSearch) -> Work[None]:
        yield
        raise OutOfTime

    monkeypatch.setattr(LeavingSearch, "smallest", endless)
    found = moved(fleet(pool=10**6), Records(), VCPU=3, DISK_GB=1)
    assert found.moves
    assert {len(plan.moves) for plan in found.moves} == {3}
    assert found.cut_short
