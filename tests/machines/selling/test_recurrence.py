"""Recurrence rules: as python-dateutil reads them, and bounded where it is not."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.machines.selling.recurrence import (
    WEEKDAYS,
    BadTime,
    last_start,
    rule_of,
    starts_around,
)

DAY = timedelta(days=1)


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    found = st.lists(st.integers(low, high), min_size=1, max_size=3, unique=True)
    return found.map(lambda each: ",".join(map(str, each)))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules that dateutil answers soon: some day of them comes again and again."""
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]))
    parts = [f"FREQ={frequency}"]
    may = st.booleans()
    if draw(may):
        parts.append(f"BYMONTH={draw(numbers(1, 12))}")
    else:
        parts.append(f"INTERVAL={draw(st.sampled_from([1, 2, 5, 11]))}")
    days = st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True)
    if frequency != "WEEKLY" and draw(may):
        parts.append(f"BYMONTHDAY={draw(st.sampled_from(['1', '13,28', '-1', '-28,5']))}")
    elif frequency in ("YEARLY", "MONTHLY") and draw(may):
        nth = draw(st.sampled_from([-4, -1, 1, 3]))
        parts.append("BYDAY=" + ",".join(f"{nth}{day}" for day in draw(days)))
    elif draw(may):
        parts.append("BYDAY=" + ",".join(draw(days)))
        if frequency in ("YEARLY", "MONTHLY") and draw(may):
            parts.append(f"BYSETPOS={draw(st.sampled_from(['1', '-1', '2,-2']))}")
    if frequency != "HOURLY" and draw(may):
        parts.append(f"BYHOUR={draw(numbers(0, 23))}")
    if draw(may):
        parts.append(f"BYMINUTE={draw(st.integers(0, 59))}")
    parts.append(f"WKST={draw(st.sampled_from(['MO', 'SU', 'TH']))}")
    return ";".join(parts)


anchors = st.datetimes(datetime(1999, 1, 1), datetime(2001, 1, 1)).map(
    lambda each: each.replace(microsecond=0)
)


def starts_until_after(text: str, anchor: datetime, end: datetime) -> list[datetime]:
    """All that dateutil has up to `end`, and the one after."""
    found: list[datetime] = []
    for start in rrulestr(text, dtstart=anchor):
        found.append(start)
        if start > end:
            break
    return found


@settings(max_examples=300, deadline=None)
@given(rules(), anchors, st.integers(-400, 1200))
def test_starts_are_those_of_dateutil(text: str, anchor: datetime, days: int) -> None:
    at = anchor + timedelta(days=days, hours=days % 24)
    found = starts_around(rule_of(text), anchor, at)
    expected = starts_until_after(text, anchor, at + DAY)
    near = [each for each in expected if at - DAY <= each <= at + DAY]
    assert [each for each in found if at - DAY <= each <= at + DAY] == near
    earlier = [each for each in expected if each < at - DAY]
    assert [each for each in found if each < at - DAY][-1:] == earlier[-1:]
    later = [each for each in expected if each > at + DAY]
    assert [each for each in found if each > at + DAY][:1] == later[:1]


@settings(max_examples=100, deadline=None)
@given(rules(), anchors, st.integers(1, 20))
def test_the_last_of_a_count_is_that_of_dateutil(text: str, anchor: datetime, count: int) -> None:
    text += f";COUNT={count}"
    expected = list(rrulestr(text, dtstart=anchor))
    assert last_start(rule_of(text), anchor) == expected[-1]
    after = starts_around(rule_of(text), anchor, expected[-1] + timedelta(days=400))
    assert after[-1] == expected[-1]


ANCHOR = datetime(2026, 1, 5, 9)


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=31;BYMONTH=4",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=WEEKLY;INTERVAL=1000;BYMONTH=2;BYDAY=MO;BYSETPOS=5",
        "FREQ=YEARLY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_a_rule_that_names_no_day_ends(text: str) -> None:
    assert starts_around(rule_of(text), ANCHOR, ANCHOR) == []


def test_rare_days_are_found() -> None:
    """Monday the twenty-ninth of February: 2044 follows 2016."""
    rule = rule_of("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO")
    assert starts_around(rule, ANCHOR, ANCHOR)[0] == datetime(2044, 2, 29, 9)


def test_a_start_long_ago_costs_nothing() -> None:
    """Only the days around are looked at: three, of half a million hours."""
    found = starts_around(rule_of("FREQ=HOURLY"), datetime(1970, 1, 1), datetime(2026, 11, 16, 12))
    assert found[0] == datetime(2026, 11, 15, 0)
    assert found[-1] == datetime(2026, 11, 17, 23)


def test_weekdays_with_and_without_a_number_add_up() -> None:
    """RFC 5545 has a list of days; dateutil demands both of it."""
    rule = rule_of("FREQ=MONTHLY;BYDAY=1MO,FR")
    found = starts_around(rule, ANCHOR, datetime(2026, 1, 15))
    named = [each.day for each in found if each.month == 1]
    assert named == [5, 9, 16, 23, 30]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "FREQ"),
        ("every monday", "FREQ"),
        ("FREQ=SECONDLY", "FREQ"),
        ("FREQ=MINUTELY", "FREQ"),
        ("FREQ=DAILY;FREQ=DAILY", "twice"),
        ("FREQ=DAILY;BYEASTER=1", "BYEASTER"),
        ("FREQ=DAILY;", "not understood"),
        ("FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=1,2", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=1000000", "INTERVAL"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20260101T000000Z", "exclude"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL"),
        ("FREQ=DAILY;UNTIL=20261301", "UNTIL"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR"),
        ("FREQ=DAILY;BYHOUR=", "BYHOUR"),
        ("FREQ=DAILY;BYMINUTE=0,30", "once an hour"),
        ("FREQ=WEEKLY;BYDAY=2MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=MON", "BYDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"),
        ("FREQ=HOURLY;BYSETPOS=1", "BYSETPOS"),
        ("FREQ=DAILY;WKST=8", "WKST"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, word: str) -> None:
    with pytest.raises(BadTime, match=word):
        rule_of(text)


def test_a_count_that_reaches_too_far_is_refused() -> None:
    with pytest.raises(BadTime, match="UNTIL may serve"):
        last_start(rule_of("FREQ=YEARLY;COUNT=200"), ANCHOR)


def test_a_rule_may_come_with_its_name_and_in_any_case() -> None:
    assert rule_of("rrule:freq=weekly;byday=mo") == rule_of("FREQ=WEEKLY;BYDAY=MO")
