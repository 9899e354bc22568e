"""Leases: when a holder is told, when it is overdue, and who alone is ever evicted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.machines.leases import LeaseNotice
from tests.machines.lab import NOW, Lab, kind, small


def lent(**fields: Any) -> Lab:
    """Since now, for eight hours."""
    lab = Lab(small(kind("quad", 4, 1, **{"maxDuration": "8h", **fields}), nodes={"n0": "quad"}))
    lab.sold("guest", "quad")
    return lab


def notices(lab: Lab, after: str) -> tuple[LeaseNotice, ...]:
    hours, minutes = map(int, after.split(":"))
    lab.now = NOW + timedelta(hours=hours, minutes=minutes)
    return lab.plan().notices


@pytest.mark.parametrize(
    ("fields", "after", "expected"),
    [
        ({}, "7:44", []),
        ({}, "7:45", [(False, False)]),
        ({}, "7:59", [(False, False)]),
        ({}, "8:00", [(True, False)]),
        ({"whenExpired": "evict"}, "7:59", [(False, False)]),
        ({"whenExpired": "evict"}, "8:00", [(True, True)]),
        ({"announceBefore": "1h"}, "7:00", [(False, False)]),
        ({"announceBefore": "0m"}, "7:59", []),
        ({"maxDuration": None}, "80:00", []),
    ],
)
def test_a_lease_is_announced_then_overdue(
    fields: dict[str, Any], after: str, expected: list[tuple[bool, bool]]
) -> None:
    """Whether it has ended, and whether the pod is to be evicted."""
    found = notices(lent(**fields), after)
    assert [(each.has_ended, each.evict) for each in found] == expected


def test_the_holder_is_told_when_it_ends_and_what_happens_then() -> None:
    [before] = notices(lent(whenExpired="evict"), "7:50")
    assert before.message == (
        "the lease of this unit of quad ends at 2026-11-16T20:00:00Z: the pod is evicted then"
    )
    [after] = notices(lent(), "8:00")
    assert after.message == (
        "the lease of this unit of quad ended at 2026-11-16T20:00:00Z: others may be waiting for"
        " the unit"
    )


def test_the_planner_looks_again_when_the_next_notice_is_due() -> None:
    lab = lent()
    times = []
    for _ in range(3):
        at = lab.plan().look_again
        times.append(at)
        if at is not None:
            lab.now = at
    assert times == [NOW + timedelta(hours=7, minutes=45), NOW + timedelta(hours=8), None]


def test_who_is_going_is_not_told_any_more() -> None:
    lab = lent(whenExpired="evict")
    pod = lab.guests["guest"]
    meta = replace(pod.metadata, deletion_timestamp="2026-11-16T20:00:00Z")
    lab.guests["guest"] = replace(pod, metadata=meta)
    assert notices(lab, "9:00") == ()


def test_nobody_is_evicted_for_those_who_wait() -> None:
    """But by the end of its own lease."""
    lab = lent(whenExpired="evict")
    lab.ask("other", "quad", priority=1000)
    plan = lab.plan()
    assert (plan.sales, plan.notices, plan.removals) == ((), (), ())
