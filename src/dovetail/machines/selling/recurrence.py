"""Recurrence rules (RRULE of RFC 5545) by which windows of machines come again; `windows` asks.

Times here are those on the wall, without a zone: what comes every Monday at nine stays at nine when
the clocks change. A rule is looked at period by period (a year, month, week or day, by its
frequency), first the one that is asked about and then its neighbours: a start long ago costs
nothing, and a rule that names no day (the thirtieth of February) ends after `SEARCHED_DAYS`.
python-dateutil, which walks from the start to the year 9999 instead, is the oracle of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import msgspec

from dovetail.core.errors import Malformed

YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY = "YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"
PERIOD_DAYS = {YEARLY: 366, MONTHLY: 31, WEEKLY: 7, DAILY: 1, HOURLY: 1}
"""Of the period that is looked at as a whole; hours are looked at by the day."""

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SEARCHED_DAYS = 40 * 366
"""A Monday the twenty-ninth of February comes at least every forty years."""
COUNTED_DAYS = 100 * 366
"""How far COUNT may reach."""
LARGEST_INTERVAL = 1000
LARGEST_COUNT = 10_000

ONE_DAY = timedelta(days=1)
LAST_DAY = date(9000, 1, 1).toordinal()
WEEKDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z)?)?")
NUMBER = re.compile(r"[+-]?\d{1,6}")


class BadTime(Malformed):
    """Text that is no duration, time, time zone or recurrence rule."""


class RecurrenceRule(msgspec.Struct, frozen=True, kw_only=True):
    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    """The last instant that counts, if it has a zone; else as the wall has it."""
    week_start: int = 0
    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    """From the end of the month, if negative."""
    weekdays: tuple[tuple[int, int], ...] = ()
    """With the how-manieth of the month or year it has to be; 0: any."""
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def rule_of(text: str) -> RecurrenceRule:
    """Raises BadTime."""
    parts: dict[str, str] = {}
    for part in text.upper().removeprefix("RRULE:").split(";"):
        key, _, value = part.partition("=")
        if key in parts:
            raise BadTime(f"{key} is given twice")
        parts[key] = value
    frequency = parts.pop("FREQ", "")
    if frequency not in PERIOD_DAYS:
        raise BadTime(f"FREQ has to be one of {', '.join(PERIOD_DAYS)}, not {frequency!r}")
    interval = _number(parts, "INTERVAL", LARGEST_INTERVAL)
    rule = RecurrenceRule(
        frequency=frequency,
        interval=1 if interval is None else interval,
        count=_number(parts, "COUNT", LARGEST_COUNT),
        until=_until(parts.pop("UNTIL", None)),
        week_start=_weekday(parts.pop("WKST", "MO")),
        months=_numbers(parts, "BYMONTH", 1, 12),
        month_days=_numbers(parts, "BYMONTHDAY", -31, 31),
        weekdays=_weekdays(parts.pop("BYDAY", None)),
        hours=_numbers(parts, "BYHOUR", 0, 23),
        minutes=_numbers(parts, "BYMINUTE", 0, 59),
        positions=_numbers(parts, "BYSETPOS", -366, 366),
    )
    if parts:
        raise BadTime(f"{', '.join(parts)} is not understood")
    _check(rule)
    return rule


def _check(rule: RecurrenceRule) -> None:
    """What no part shows by itself."""
    if rule.count is not None and rule.until is not None:
        raise BadTime("COUNT and UNTIL exclude each other")
    if len(rule.minutes) > 1:
        raise BadTime("BYMINUTE takes one minute: a window comes at most once an hour")
    if rule.frequency == HOURLY and rule.positions:
        raise BadTime("BYSETPOS needs a frequency of days or more")
    if rule.frequency not in (MONTHLY, YEARLY) and any(nth for _, nth in rule.weekdays):
        raise BadTime("BYDAY takes numbers only if FREQ is MONTHLY or YEARLY")
    if rule.frequency == WEEKLY and rule.month_days:
        raise BadTime("BYMONTHDAY cannot go with FREQ=WEEKLY")
    if 0 in rule.month_days or 0 in rule.positions:
        raise BadTime("BYMONTHDAY and BYSETPOS count from 1, or from -1 backwards")


def _number(parts: dict[str, str], key: str, most: int) -> int | None:
    found = _numbers(parts, key, 1, most)
    if len(found) > 1:
        raise BadTime(f"{key} takes one number")
    return found[0] if found else None


def _numbers(parts: dict[str, str], key: str, least: int, most: int) -> tuple[int, ...]:
    if key not in parts:
        return ()
    texts = parts.pop(key).split(",")
    if not all(NUMBER.fullmatch(text) and least <= int(text) <= most for text in texts):
        raise BadTime(f"{key} takes numbers from {least} to {most}")
    return tuple(sorted(set(map(int, texts))))


def _weekday(text: str) -> int:
    if text not in WEEKDAYS:
        raise BadTime(f"WKST takes one of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(text)


def _weekdays(text: str | None) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    found = [WEEKDAY.fullmatch(each) for each in text.split(",")]
    days = [(WEEKDAYS.index(each[2]), int(each[1] or 0)) for each in found if each]
    if len(days) < len(found) or any(each and each[1] and not int(each[1]) for each in found):
        raise BadTime(f"BYDAY takes {', '.join(WEEKDAYS)}, with a number before it or not")
    return tuple(days)


def _until(text: str | None) -> datetime | None:
    """A day without a time counts as a whole."""
    if text is None:
        return None
    found = UNTIL.fullmatch(text)
    try:
        if found is not None:
            day, time, zone = found.groups()
            read = datetime.strptime(day + (time or "235959"), "%Y%m%d%H%M%S")
            return read.replace(tzinfo=UTC) if zone else read
    except ValueError:
        pass
    raise BadTime("UNTIL takes a time such as 20261231T235959Z")


def starts_around(rule: RecurrenceRule, anchor: datetime, at: datetime) -> list[datetime]:
    """The starts within a day of `at`, and the next one on either side, as far as there are any.

    `anchor` is where the rule begins and what it takes from it: the time of day, the day of the
    month. A day on either side is more than what any clock is ever put back or forward.
    """
    if rule.count is not None:
        last = last_start(rule, anchor)
        return [start for start in _around(rule, anchor, min(at, last)) if start <= last]
    return _around(rule, anchor, at)


def _around(rule: RecurrenceRule, anchor: datetime, at: datetime) -> list[datetime]:
    whole = _completed(rule, anchor)
    periods = SEARCHED_DAYS // PERIOD_DAYS[rule.frequency]
    here = max(0, _period_at(whole, anchor, at.date()))
    later: list[datetime] = []
    for number in range(here, here + periods):
        later += _starts(whole, anchor, number)
        if later and later[-1] > at + ONE_DAY:
            break
    earlier: list[datetime] = []
    for number in range(here - 1, max(-1, here - periods), -1):
        earlier = [*_starts(whole, anchor, number), *earlier]
        if earlier and earlier[0] < at - ONE_DAY:
            break
    return earlier + later


@lru_cache(maxsize=1024)
def last_start(rule: RecurrenceRule, anchor: datetime) -> datetime:
    """The one that COUNT ends with. Raises BadTime where that is too far away to count."""
    whole, left = _completed(rule, anchor), rule.count or 1
    for number in range(COUNTED_DAYS // PERIOD_DAYS[rule.frequency]):
        found = _starts(whole, anchor, number)
        if len(found) >= left:
            return found[left - 1]
        left -= len(found)
    raise BadTime(f"COUNT={rule.count} is not reached within a hundred years: UNTIL may serve")


def _completed(rule: RecurrenceRule, anchor: datetime) -> RecurrenceRule:
    """With what the rule leaves to its beginning written out."""
    months, month_days, weekdays = rule.months, rule.month_days, rule.weekdays
    if not month_days and not weekdays:
        if rule.frequency in (YEARLY, MONTHLY):
            month_days = (anchor.day,)
        if rule.frequency == YEARLY:
            months = months or (anchor.month,)
        if rule.frequency == WEEKLY:
            weekdays = ((anchor.weekday(), 0),)
    hours = rule.hours or (() if rule.frequency == HOURLY else (anchor.hour,))
    return msgspec.structs.replace(
        rule,
        months=months,
        month_days=month_days,
        weekdays=weekdays,
        hours=hours,
        minutes=rule.minutes or (anchor.minute,),
    )


def _period_at(rule: RecurrenceRule, anchor: datetime, day: date) -> int:
    """The number of the period that the day is in, or of the last one before it."""
    match rule.frequency:
        case "YEARLY":
            return (day.year - anchor.year) // rule.interval
        case "MONTHLY":
            return (12 * (day.year - anchor.year) + day.month - anchor.month) // rule.interval
        case "WEEKLY":
            return (day.toordinal() - _week(rule, anchor)) // (7 * rule.interval)
        case "DAILY":
            return (day.toordinal() - anchor.toordinal()) // rule.interval
        case _:
            return day.toordinal() - anchor.toordinal()


def _week(rule: RecurrenceRule, anchor: datetime) -> int:
    """The day that the first week begins with."""
    return anchor.toordinal() - (anchor.weekday() - rule.week_start) % 7


def _days(rule: RecurrenceRule, anchor: datetime, number: int) -> Iterator[date]:
    """All days of a period."""
    match rule.frequency:
        case "YEARLY":
            year = anchor.year + number * rule.interval
            first, length = _ordinal(year, 1), _ordinal(year + 1, 1) - _ordinal(year, 1)
        case "MONTHLY":
            month = anchor.month + number * rule.interval
            first = _ordinal(anchor.year, month)
            length = _ordinal(anchor.year, month + 1) - first
        case "WEEKLY":
            first, length = _week(rule, anchor) + 7 * number * rule.interval, 7
        case "DAILY":
            first, length = anchor.toordinal() + number * rule.interval, 1
        case _:
            first, length = anchor.toordinal() + number, 1
    return map(date.fromordinal, range(first, min(first + length, LAST_DAY)))


def _ordinal(year: int, month: int) -> int:
    """Of the first day of a month; months go on after the twelfth."""
    years, rest = divmod(month - 1, 12)
    return date(min(year + years, date.max.year), rest + 1, 1).toordinal()


def _starts(rule: RecurrenceRule, anchor: datetime, number: int) -> list[datetime]:
    """All of one period that are not before the anchor, in order."""
    found = [
        datetime(day.year, day.month, day.day, hour, minute, anchor.second)
        for day in _days(rule, anchor, number)
        if _names(rule, day)
        for hour in rule.hours or range(24)
        if rule.frequency != HOURLY or _hours_since(anchor, day, hour) % rule.interval == 0
        for minute in rule.minutes
    ]
    if rule.positions:
        count = len(found)
        places = {each - 1 if each > 0 else count + each for each in rule.positions}
        found = [found[place] for place in sorted(places) if 0 <= place < count]
    return [start for start in found if start >= anchor]


def _hours_since(anchor: datetime, day: date, hour: int) -> int:
    return 24 * (day.toordinal() - anchor.toordinal()) + hour - anchor.hour


def _names(rule: RecurrenceRule, day: date) -> bool:
    if rule.months and day.month not in rule.months:
        return False
    if rule.month_days:
        from_end = day.toordinal() - _ordinal(day.year, day.month + 1)
        if day.day not in rule.month_days and from_end not in rule.month_days:
            return False
    if not rule.weekdays:
        return True
    nth = {nth for weekday, nth in rule.weekdays if weekday == day.weekday()}
    return 0 in nth or (bool(nth) and not nth.isdisjoint(_ranks(rule, day)))


def _ranks(rule: RecurrenceRule, day: date) -> tuple[int, int]:
    """The how-manieth of its weekday it is, from the front and from the back."""
    if rule.frequency == YEARLY and not rule.months:
        first, after = _ordinal(day.year, 1), _ordinal(day.year + 1, 1)
    else:
        first, after = _ordinal(day.year, day.month), _ordinal(day.year, day.month + 1)
    return (day.toordinal() - first) // 7 + 1, -((after - 1 - day.toordinal()) // 7 + 1)
