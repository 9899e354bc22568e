"""Leases: announced before they end, shown when they have ended, enforced only where asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from dovetail.ledger import opened
from dovetail.ledger.views import machines
from dovetail.ledger.views.machines import MachineGroup
from tests.kube.machines.bed import Bed, machine_bed
from tests.kube.machines.corner import Corner, corner_of

BUDGETS = "apis/policy/v1:poddisruptionbudgets"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("leases")) as running:
        running.cluster.start_disruption_budgets()
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def lasts(row: dict[str, Any]) -> float:
    return (
        datetime.fromisoformat(row["expires"]) - datetime.fromisoformat(row["since"])
    ).total_seconds()


def test_a_lease_is_shown_from_the_start(corner: Corner) -> None:
    corner.sell_small(2, maxDuration="1h30m")
    corner.guest("a")
    corner.await_running("a")
    corner.bed.await_that(lambda: "a" in corner.holders(), "holder")
    assert lasts(corner.holders()["a"]) == 5400
    assert corner.bed.events("LeaseEnding", corner.namespace) == []


def test_the_ledger_shows_the_same_as_the_status(corner: Corner) -> None:
    """Read there by whoever has the ledger, and not the cluster."""
    corner.sell_small(1, maxDuration="1h30m")
    corner.guest("a")
    corner.await_running("a")
    corner.guest("b")
    corner.await_waiting(b="SoldOut")

    def shown() -> MachineGroup:
        with opened(corner.bed.database) as ledger:
            found = ledger.read(machines.listing).result()
        return next(each for each in found if each.name == corner.group)

    def queue() -> list[tuple[str, str | None]]:
        told = shown().told
        return [] if told is None else [(each.pod, each.reason) for each in told.queue.guests]

    corner.bed.await_that(lambda: queue() == [("b", "SoldOut")], "the queue in the ledger")
    found = shown()
    (holder,) = (each for each in found.holders if not each.unit.is_stock)
    assert (holder.pod, holder.until) == ("a", holder.unit.since + 5400)
    assert [(each.used, each.waiting) for each in found.types] == [(1, 1)]


def test_the_end_is_announced_and_then_told_and_nobody_is_evicted(corner: Corner) -> None:
    corner.sell_small(1, maxDuration="4s", announceBefore="2s")
    corner.guest("a")
    corner.await_running("a")
    corner.guest("b")
    corner.await_event("LeaseEnding", "a")
    corner.await_event("LeaseEnded", "a")
    assert corner.running() == ["a"]
    assert lasts(corner.holders()["a"]) == 4
    time.sleep(1)
    assert corner.running() == ["a"]
    corner.await_waiting(b="SoldOut")
    # The unit goes to the next when the holder goes.
    corner.end("a")
    corner.await_running("b")


def test_a_lease_as_long_as_its_announcement_is_announced_at_once(corner: Corner) -> None:
    corner.sell_small(1, maxDuration="10m")
    corner.guest("a")
    corner.await_event("LeaseEnding", "a")


def test_an_enforced_lease_evicts_when_it_has_ended(corner: Corner) -> None:
    corner.sell_small(1, maxDuration="3s", announceBefore="1s", whenExpired="evict")
    corner.guest("a", terminationGracePeriodSeconds=1)
    corner.await_running("a")
    since = time.monotonic()
    corner.guest("b")
    corner.await_event("LeaseEnding", "a")
    corner.await_running("b")
    assert time.monotonic() - since > 2
    corner.await_event("LeaseEnded", "a")
    assert "a" not in corner.bed.pods(corner.namespace)


def test_a_disruption_budget_holds_eviction_back(corner: Corner) -> None:
    corner.sell_small(1, maxDuration="2s", announceBefore="1s", whenExpired="evict")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"keep": "me"}}}
    corner.create(BUDGETS, "budget", budget)
    corner.guest("a", labels={"keep": "me"}, terminationGracePeriodSeconds=0)
    corner.await_running("a")
    corner.guest("b")
    corner.await_event("LeaseEnded", "a")
    time.sleep(3)
    assert corner.running() == ["a"]
    path = f"/apis/policy/v1/namespaces/{corner.namespace}/poddisruptionbudgets/budget"
    corner.bed.cluster.request("DELETE", path)
    corner.await_running("b")


def test_a_lease_that_is_enforced_later_ends_those_that_have_ended(corner: Corner) -> None:
    """And one that is made longer ends later."""
    corner.sell_small(2, maxDuration="1s", announceBefore="1s")
    corner.guests("a", "b", terminationGracePeriodSeconds=0)
    corner.await_event("LeaseEnded", "a", "b")

    def longer(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0] |= {"maxDuration": "1h", "whenExpired": "evict"}

    corner.bed.edit_machine(corner.group, longer)
    corner.bed.await_that(
        lambda: all(lasts(row) == 3600 for row in corner.holders().values()), "longer leases"
    )
    assert corner.running() == ["a", "b"]

    def shorter(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0] |= {"maxDuration": "1s"}

    corner.bed.edit_machine(corner.group, shorter)
    corner.await_running()
    corner.await_usage(2, 2, 0, 0)


def test_a_lease_outlives_the_operator(corner: Corner) -> None:
    corner.sell_small(1, maxDuration="5s", announceBefore="1s", whenExpired="evict")
    corner.guest("a", terminationGracePeriodSeconds=0)
    corner.bed.await_that(lambda: "a" in corner.holders(), "holder")
    before = corner.holders()["a"]
    corner.bed.stop_operators()
    time.sleep(5)
    assert corner.running() == ["a"]
    corner.bed.start_operator()
    corner.await_running()
    corner.await_event("LeaseEnded", "a")
    assert lasts(before) == 5
