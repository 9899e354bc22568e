"""Windows: units that are set aside for some buyers at some times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kube.machines.bed import Bed, machine_bed
from tests.kube.machines.corner import Corner, corner_of


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("windows")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def soon(seconds: float) -> datetime:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


def window(start: datetime, duration: str, units: int, buyer: str, **more: Any) -> dict[str, Any]:
    return {
        "name": "course",
        "start": text(start),
        "duration": duration,
        "units": units,
        "buyers": {"namespaces": [buyer]},
        **more,
    }


def row(corner: Corner) -> dict[str, Any]:
    rows = corner.status().get("windows", [])
    return rows[0] if rows else {}


def test_units_are_held_from_the_start_to_the_end(corner: Corner) -> None:
    course = corner.add_namespace(f"{corner.group}-course")
    corner.sell_small(3)
    corner.guest("early")
    corner.await_running("early")
    start = soon(3)
    end = start + timedelta(seconds=6)

    def book(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["windows"] = [window(start, "6s", 2, course)]

    corner.bed.edit_machine(corner.group, book)
    corner.bed.await_that(lambda: row(corner).get("held") == 2, "hold")
    assert datetime.now(UTC) >= start
    about = {"type": "small", "name": "course", "start": text(start), "end": text(end), "units": 2}
    assert about.items() <= row(corner).items()
    # One is sold and two are held back: others are told.
    corner.guest("other")
    corner.await_waiting(other="HeldForWindow")
    assert "course" in corner.why("other")
    corner.await_event("HeldForWindow", "other")
    corner.guest("booked", namespace=course)
    corner.await_running("booked", namespace=course)
    # It is over, and everybody may buy.
    corner.await_running("early", "other")
    assert datetime.now(UTC) >= end
    corner.bed.await_that(lambda: not row(corner), "no row")
    assert corner.running(course) == ["booked"], "nobody goes for a window's end"


def test_units_are_held_back_before_the_start(corner: Corner) -> None:
    course = corner.add_namespace(f"{corner.group}-course")
    booked = window(soon(3600), "1h", 1, course, holdBefore="50m")
    corner.sell_small(2, windows=[booked])
    corner.bed.await_that(lambda: row(corner).get("held") == 0, "row")
    corner.guest("early")
    corner.await_running("early")

    def sooner(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["windows"][0]["holdBefore"] = "2h"

    corner.bed.edit_machine(corner.group, sooner)
    corner.bed.await_that(lambda: row(corner).get("held") == 1, "hold")
    corner.guest("late")
    corner.await_waiting(late="HeldForWindow")
    # As long as a unit may be lent, where nothing else is said.

    def lent(spec: dict[str, Any]) -> None:
        del spec["machineTypes"][0]["windows"][0]["holdBefore"]
        spec["machineTypes"][0]["maxDuration"] = "30m"

    corner.bed.edit_machine(corner.group, lent)
    corner.await_running("early", "late")


def test_a_window_that_runs_already(corner: Corner) -> None:
    course = corner.add_namespace(f"{corner.group}-course")
    corner.sell_small(1, windows=[window(soon(-60), "1h", 1, course)])
    corner.guest("other")
    corner.await_waiting(other="HeldForWindow")
    corner.guest("booked", namespace=course)
    corner.await_running("booked", namespace=course)
    corner.await_waiting(other="SoldOut")


def test_what_is_short_for_a_window_and_when_it_is_freed(corner: Corner) -> None:
    """By leases that end; where they are enforced they end in time."""
    course = corner.add_namespace(f"{corner.group}-course")
    corner.sell_small(2, maxDuration="6s", announceBefore="1s", whenExpired="evict")
    corner.guests("a", "b", terminationGracePeriodSeconds=0)
    corner.await_running("a", "b")

    def book(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["windows"] = [window(soon(5), "1h", 1, course)]

    corner.bed.edit_machine(corner.group, book)
    corner.bed.await_that(lambda: row(corner).get("short") == 1, "short")
    corner.bed.await_that(lambda: len(corner.holders()) == 2, "holders")
    ends = sorted(each["expires"] for each in corner.holders().values())
    assert row(corner)["freedBy"] == ends[0]
    corner.guest("booked", namespace=course)
    corner.await_running("booked", namespace=course)
    corner.bed.await_that(lambda: row(corner)["short"] == 0, "enough")


def test_a_window_that_comes_again(corner: Corner) -> None:
    course = corner.add_namespace(f"{corner.group}-course")
    first = soon(-3600 * 24 * 14)
    daily = window(first, "30m", 1, course, rrule="FREQ=DAILY", timeZone="Asia/Tokyo")
    corner.sell_small(1, windows=[daily])
    corner.bed.await_that(lambda: bool(row(corner)), "row")
    at = datetime.fromisoformat(row(corner)["start"])
    assert at.time() == first.time()
    assert timedelta(0) <= datetime.now(UTC) - at < timedelta(minutes=1)
    corner.guest("other")
    corner.await_waiting(other="HeldForWindow")

    def weekly(spec: dict[str, Any]) -> None:
        tomorrow = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[(at.weekday() + 1) % 7]
        rule = {"rrule": f"FREQ=WEEKLY;BYDAY={tomorrow}", "timeZone": "UTC"}
        spec["machineTypes"][0]["windows"][0] |= rule

    corner.bed.edit_machine(corner.group, weekly)
    corner.await_running("other")
    corner.bed.await_that(
        lambda: row(corner)["start"] == text(at + timedelta(days=1)), "the next one"
    )
    assert row(corner)["held"] == 0


def test_holders_who_may_buy_in_the_window_are_of_it(corner: Corner) -> None:
    course = corner.add_namespace(f"{corner.group}-course")
    corner.sell_small(3)
    corner.guest("booked", namespace=course)
    corner.await_running("booked", namespace=course)

    def book(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["windows"] = [window(soon(-1), "1h", 2, course)]

    corner.bed.edit_machine(corner.group, book)
    corner.bed.await_that(lambda: row(corner).get("held") == 1, "the other one")
    corner.guests("a", "b")
    corner.await_running("a")
    corner.await_waiting(b="HeldForWindow")
