"""Windows and leases: when units are set aside for some buyers, and until when they are lent.

The planner asks what is held back now and when to look again; validation reads the same texts
here. The time is always a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec

from dovetail.machines.documents import Buyers, MachineType, Window
from dovetail.machines.selling.buyers import may_buy
from dovetail.machines.selling.recurrence import BadTime, last_start, rule_of, starts_around
from dovetail.podfit.objects import Namespace

DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,5})s)?", re.ASCII)
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", re.ASCII)
"""Leaves out what time zone databases have besides zones: `localtime`, `posix/`, `right/`."""
FIRST_YEAR, LAST_YEAR = 1970, 2999


def duration_of(text: str) -> timedelta:
    """Of `2d`, `8h`, `90m`, `30s` or `1h30m`; a day has 24 hours. Raises BadTime."""
    found = DURATION.fullmatch(text)
    if not text or found is None:
        raise BadTime(f"{text!r} is no duration such as 8h, 90m or 1h30m")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def time_of(text: str) -> datetime:
    """Of a time as RFC 3339 writes it, in UTC. Raises BadTime."""
    try:
        found = datetime.fromisoformat(text.upper()) if TIME.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None or not FIRST_YEAR <= found.year <= LAST_YEAR:
        raise BadTime(f"{text!r} is no time such as 2026-11-16T09:00:00Z")
    return found.astimezone(UTC)


@lru_cache(maxsize=256)
def zone_of(name: str) -> ZoneInfo:
    """Raises BadTime."""
    try:
        if ZONE.fullmatch(name):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise BadTime(f"{name!r} is no time zone such as Europe/Berlin")


class Occurrence(msgspec.Struct, frozen=True):
    """One time of a window, in UTC; over when `end` is reached."""

    start: datetime
    end: datetime


def occurrence(window: Window, now: datetime) -> Occurrence | None:
    """The one that runs, else the next; None: it does not come again. Raises BadTime.

    Where clocks are put forward, a time that they skip is read as before the change (02:30 as
    03:30), and where they are put back the first of both is meant: RFC 5545, 3.3.5.
    """
    lasts = duration_of(window.duration)
    starts = _starts(window, now)
    running = max((each for each in starts if each <= now < each + lasts), default=None)
    start = running or min((each for each in starts if each > now), default=None)
    return None if start is None else Occurrence(start, start + lasts)


def _starts(window: Window, now: datetime) -> list[datetime]:
    """Those next to `now` on either side are among them."""
    first = time_of(window.start)
    if not window.rrule:
        return [first]
    rule, zone = rule_of(window.rrule), zone_of(window.time_zone)
    until = rule.until or datetime.max.replace(tzinfo=UTC)
    if until.tzinfo is None:
        until = until.replace(tzinfo=zone)
    around = min(max(first, now), until).astimezone(zone).replace(tzinfo=None)
    local = starts_around(rule, _anchor(window), around)
    starts = [each.replace(tzinfo=zone).astimezone(UTC) for each in local]
    return [each for each in starts if each <= until]


def _anchor(window: Window) -> datetime:
    """Its start as the wall has it, in whole seconds."""
    local = time_of(window.start).astimezone(zone_of(window.time_zone))
    return local.replace(tzinfo=None, microsecond=0)


def check_rule(window: Window) -> None:
    """Raises BadTime if its rule cannot be read, or never names a time. Validation asks."""
    rule = rule_of(window.rrule)
    if rule.count is not None:
        last_start(rule, _anchor(window))
    if occurrence(window, time_of(window.start)) is None:
        raise BadTime(f"{window.rrule} names no time from {window.start} on")


class WindowHold(msgspec.Struct, frozen=True, kw_only=True):
    """Units of a type that are for a window's buyers now."""

    name: str
    units: int
    start: datetime
    end: datetime
    active: bool
    """Whether it runs; else it is about to, and others are not sold what it will need."""
    buyers: Buyers | None


def hold_before(machine_type: MachineType, window: Window) -> timedelta:
    """How long before its start a window holds units back: who buys then would stay into it."""
    written = window.hold_before or machine_type.max_duration
    return duration_of(written) if written else timedelta(0)


def holds(machine_type: MachineType, now: datetime) -> tuple[WindowHold, ...]:
    """Of the windows that run or are about to, by start and name."""
    found = []
    for window in machine_type.windows:
        at = occurrence(window, now)
        if at is not None and at.start - hold_before(machine_type, window) <= now:
            found.append(
                WindowHold(
                    name=window.name,
                    units=window.units,
                    start=at.start,
                    end=at.end,
                    active=at.start <= now,
                    buyers=window.buyers,
                )
            )
    return tuple(sorted(found, key=lambda hold: (hold.start, hold.name)))


def units_taken(
    windows: Sequence[WindowHold], holders: Iterable[tuple[Namespace, int]]
) -> tuple[int, ...]:
    """How many units of each window its own buyers have already, of what each namespace holds.

    A unit counts for one window only: the first that lets its holder in and still has units.
    Holders that fewer windows let in come first, so that others take what these cannot.
    """
    taken = [0] * len(windows)
    open_to = [
        ([n for n, each in enumerate(windows) if may_buy(each.buyers, namespace)], count)
        for namespace, count in holders
    ]
    for places, count in sorted(open_to, key=lambda each: len(each[0])):
        left = count
        for place in places:
            more = min(left, windows[place].units - taken[place])
            taken[place] += more
            left -= more
    return tuple(taken)


def next_change(machine_type: MachineType, now: datetime) -> datetime | None:
    """When `holds` says something else for the first time after now; None: never again."""
    changes = []
    for window in machine_type.windows:
        at = occurrence(window, now)
        if at is not None:
            times = (at.start - hold_before(machine_type, window), at.start, at.end)
            changes.append(min(each for each in times if each > now))
    return min(changes, default=None)


def lease_end(since: datetime, machine_type: MachineType) -> datetime | None:
    """When a unit that was sold then is to be given back; None: never."""
    lasts = machine_type.max_duration
    return None if lasts is None else since + duration_of(lasts)
