"""Windows and leases: what is set aside when, and until when a unit is lent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from dovetail.machines.documents import MachineType, Window
from dovetail.machines.selling.recurrence import BadTime
from dovetail.machines.selling.windows import (
    Occurrence,
    WindowHold,
    check_rule,
    duration_of,
    holds,
    lease_end,
    next_change,
    occurrence,
    time_of,
    units_taken,
    zone_of,
)
from tests.machines.building import namespace

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def window(**fields: Any) -> Window:
    written = {
        "name": "course",
        "start": "2026-11-16T09:00:00Z",
        "duration": "2h",
        "units": 2,
        "buyers": {"namespaces": ["course"]},
        **fields,
    }
    return msgspec.convert(written, Window)


def machine_type(*windows: Window, **fields: Any) -> MachineType:
    written = {
        "name": "compute",
        "spec": {"cpu": 1, "memory": "1Gi"},
        "available": 4,
        "windows": windows,
        **fields,
    }
    return msgspec.convert(msgspec.to_builtins(written), MachineType)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8h", 8 * HOUR),
        ("90m", 1.5 * HOUR),
        ("1h30m", 1.5 * HOUR),
        ("2d", 48 * HOUR),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("0s", timedelta(0)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert duration_of(text) == expected


@pytest.mark.parametrize(
    "text", ["", "8", "h", "-8h", "8 h", "1.5h", "30m1h", "8H", "999999d", "٣h"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(BadTime):
        duration_of(text)


@pytest.mark.parametrize(
    "text",
    ["2026-11-16T09:00:00Z", "2026-11-16t09:00:00z", "2026-11-16T18:00:00+09:00"],
)
def test_times(text: str) -> None:
    assert time_of(text) == datetime(2026, 11, 16, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-16",
        "2026-11-16T09:00:00",
        "2026-11-16T09:00Z",
        "20261116T090000Z",
        "2026-13-16T09:00:00Z",
        "2026-W47-1T09:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:00:00-14:00",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(BadTime):
        time_of(text)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Japan"])
def test_time_zones(name: str) -> None:
    assert zone_of(name).key == name


@pytest.mark.parametrize(
    "name",
    ["", "Berlin", "America", "../etc/passwd", "Europe/../UTC", "/etc/localtime", "localtime"],
)
def test_what_is_no_time_zone(name: str) -> None:
    with pytest.raises(BadTime):
        zone_of(name)


def test_a_window_comes_once_where_it_has_no_rule() -> None:
    once = window()
    only = Occurrence(at("2026-11-16T09:00Z"), at("2026-11-16T11:00Z"))
    assert occurrence(once, at("2020-01-01T00:00Z")) == only
    assert occurrence(once, at("2026-11-16T09:00Z")) == only
    assert occurrence(once, at("2026-11-16T10:59:59Z")) == only
    assert occurrence(once, at("2026-11-16T11:00Z")) is None


def test_a_window_comes_again_by_its_rule() -> None:
    """Mondays and Wednesdays; the sixteenth is a Monday."""
    weekly = window(rrule="FREQ=WEEKLY;BYDAY=MO,WE")
    expected = [
        ("2026-11-01T00:00Z", "2026-11-16T09:00Z"),
        ("2026-11-16T10:00Z", "2026-11-16T09:00Z"),
        ("2026-11-16T11:00Z", "2026-11-18T09:00Z"),
        ("2026-11-19T00:00Z", "2026-11-23T09:00Z"),
        ("2056-11-19T00:00Z", "2056-11-20T09:00Z"),
    ]
    for now, start in expected:
        found = occurrence(weekly, at(now))
        assert found == Occurrence(at(start), at(start) + 2 * HOUR)


def test_times_of_a_rule_are_those_that_it_names() -> None:
    """The start tells from when on; here it is a Monday, which the rule does not name."""
    found = occurrence(window(rrule="FREQ=WEEKLY;BYDAY=FR"), at("2026-11-16T09:30Z"))
    assert found is not None
    assert found.start == at("2026-11-20T09:00Z")


@pytest.mark.parametrize(
    ("now", "start"),
    [
        ("2026-03-27T12:00Z", "2026-03-28T01:30Z"),
        ("2026-03-28T12:00Z", "2026-03-29T01:30Z"),  # 02:30 is skipped: read as 03:30
        ("2026-03-29T12:00Z", "2026-03-30T00:30Z"),
        ("2026-10-23T12:00Z", "2026-10-24T00:30Z"),
        ("2026-10-24T12:00Z", "2026-10-25T00:30Z"),  # 02:30 comes twice: the first is meant
        ("2026-10-25T00:45Z", "2026-10-25T00:30Z"),
        ("2026-10-25T12:00Z", "2026-10-26T01:30Z"),
    ],
)
def test_a_window_stays_at_its_hour_when_clocks_change(now: str, start: str) -> None:
    daily = window(start="2026-01-01T01:30:00Z", rrule="FREQ=DAILY", timeZone="Europe/Berlin")
    found = occurrence(daily, at(now))
    assert found is not None
    assert found.start == at(start)
    assert found.end - found.start == 2 * HOUR


def test_the_day_of_the_week_is_that_of_the_time_zone() -> None:
    """Monday 08:00 in Tokyo is Sunday 23:00 in UTC."""
    monday = window(start="2026-11-16T08:00:00+09:00", rrule="FREQ=WEEKLY", timeZone="Asia/Tokyo")
    found = occurrence(monday, at("2026-11-17T00:00Z"))
    assert found is not None
    assert found.start == at("2026-11-22T23:00Z")


@pytest.mark.parametrize(
    ("rule", "last"),
    [
        ("FREQ=DAILY;COUNT=3", "2026-11-18T09:00Z"),
        ("FREQ=DAILY;UNTIL=20261118T090000Z", "2026-11-18T09:00Z"),
        ("FREQ=DAILY;UNTIL=20261118T085959Z", "2026-11-17T09:00Z"),
        ("FREQ=DAILY;UNTIL=20261118T180000", "2026-11-18T09:00Z"),
        ("FREQ=DAILY;UNTIL=20261118T175959", "2026-11-17T09:00Z"),
        ("FREQ=DAILY;UNTIL=20261118", "2026-11-18T09:00Z"),
    ],
)
def test_a_rule_ends_by_count_or_until(rule: str, last: str) -> None:
    """Nine o'clock is eighteen in Tokyo, which times without a zone are of."""
    ending = window(rrule=rule, timeZone="Asia/Tokyo")
    found = occurrence(ending, at(last) - HOUR)
    assert found is not None
    assert found.start == at(last)
    assert occurrence(ending, at(last) + HOUR) == found
    assert occurrence(ending, at(last) + 2 * HOUR) is None


@pytest.mark.parametrize("rule", ["FREQ=DAILY;COUNT=3", "FREQ=DAILY;UNTIL=20261118T090000Z"])
def test_the_last_time_of_a_rule_runs_on_after_its_end(rule: str) -> None:
    found = occurrence(window(rrule=rule, duration="30d"), at("2026-12-01T00:00Z"))
    assert found is not None
    assert found.start == at("2026-11-18T09:00Z")


def test_of_times_that_overlap_the_latest_runs() -> None:
    overlapping = window(rrule="FREQ=DAILY", duration="30h")
    found = occurrence(overlapping, at("2026-11-18T10:00Z"))
    assert found is not None
    assert found.start == at("2026-11-18T09:00Z")


@pytest.mark.parametrize(
    "rule", ["FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;UNTIL=20200101T000000Z"]
)
def test_a_rule_that_never_comes_is_refused(rule: str) -> None:
    with pytest.raises(BadTime, match="names no time"):
        check_rule(window(rrule=rule))


@pytest.mark.parametrize(
    ("fields", "since"),
    [
        ({}, "2026-11-16T09:00Z"),
        ({"maxDuration": "3h"}, "2026-11-16T06:00Z"),
        ({"maxDuration": "3h", "holdBefore": "1h"}, "2026-11-16T08:00Z"),
        ({"maxDuration": "3h", "holdBefore": "0s"}, "2026-11-16T09:00Z"),
    ],
)
def test_units_are_held_back_before_the_window(fields: dict[str, Any], since: str) -> None:
    hold_before = {key: fields.pop(key) for key in ("holdBefore",) if key in fields}
    sold = machine_type(window(**hold_before), **fields)
    assert holds(sold, at(since) - timedelta(seconds=1)) == ()
    [hold] = holds(sold, at(since))
    assert (hold.name, hold.units, hold.active) == ("course", 2, since == "2026-11-16T09:00Z")
    [hold] = holds(sold, at("2026-11-16T09:00Z"))
    assert hold.active
    assert holds(sold, at("2026-11-16T11:00Z")) == ()


def test_the_planner_looks_again_at_every_change_of_what_is_held() -> None:
    """Followed from one to the next, no change in between is missed."""
    sold = machine_type(
        window(rrule="FREQ=DAILY;COUNT=2"),
        window(name="other", start="2026-11-16T10:30:00Z", duration="1h"),
        maxDuration="3h",
    )
    seen = []
    now: datetime | None = at("2026-11-16T00:00Z")
    while now is not None:
        seen.append(
            (now.strftime("%d %H:%M"), [(each.name, each.active) for each in holds(sold, now)])
        )
        now = next_change(sold, now)
    assert seen == [
        ("16 00:00", []),
        ("16 06:00", [("course", False)]),
        ("16 07:30", [("course", False), ("other", False)]),
        ("16 09:00", [("course", True), ("other", False)]),
        ("16 10:30", [("course", True), ("other", True)]),
        ("16 11:00", [("other", True)]),
        ("16 11:30", []),
        ("17 06:00", [("course", False)]),
        ("17 09:00", [("course", True)]),
        ("17 11:00", []),
    ]


def test_nothing_changes_where_there_are_no_windows() -> None:
    assert next_change(machine_type(), at("2026-11-16T00:00Z")) is None


COURSE, LAB, OTHER = namespace("course"), namespace("lab"), namespace("other")


def hold(name: str, units: int, *buyers: str) -> WindowHold:
    [found] = holds(
        machine_type(window(name=name, units=units, buyers={"namespaces": list(buyers)})),
        at("2026-11-16T09:00Z"),
    )
    return found


def test_units_of_a_windows_buyers_count_for_it() -> None:
    windows = (hold("course", 2, "course"),)
    assert units_taken(windows, []) == (0,)
    assert units_taken(windows, [(COURSE, 1), (OTHER, 5)]) == (1,)
    assert units_taken(windows, [(COURSE, 3)]) == (2,)


def test_a_unit_counts_for_one_window_only() -> None:
    windows = (hold("course", 1, "course"), hold("both", 2, "course", "lab"))
    assert units_taken(windows, [(COURSE, 1)]) == (1, 0)
    assert units_taken(windows, [(COURSE, 2)]) == (1, 1)
    assert units_taken(windows, [(LAB, 1), (OTHER, 1)]) == (0, 1)


def test_who_has_more_windows_to_choose_from_takes_what_others_cannot() -> None:
    windows = (hold("both", 1, "course", "lab"), hold("course", 1, "course"))
    assert units_taken(windows, [(COURSE, 1), (LAB, 1)]) == (1, 1)


def test_a_lease_ends_after_its_duration() -> None:
    since = at("2026-11-16T09:00Z")
    assert lease_end(since, machine_type()) is None
    assert lease_end(since, machine_type(maxDuration="8h")) == since + 8 * HOUR
