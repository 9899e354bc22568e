"""Status of a Machine: what is sold, to whom, since when, who waits and why, as `kubectl` shows it.

The planner makes it from what it counted; the operator writes it only when it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from dovetail.machines.documents import MachineType, Window
from dovetail.machines.leases import lent_seconds
from dovetail.machines.line import GuestLine
from dovetail.machines.pods import is_live_sleeper, is_operating, type_of, user_of
from dovetail.machines.selling.buyers import may_buy
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.waiting import Waiting
from dovetail.machines.selling.windows import duration_of, occurrence
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.stock.families import FamilyBook
from dovetail.machines.stock.places import StockShortage
from dovetail.machines.survey import Survey
from dovetail.podfit.objects import Pod

MOST_SHOWN, MOST_SHOWN_IN_ALL = 100, 1000
"""Holders, and those who wait: of one type, and of all. A status has to stay readable, and within
what etcd takes, however many types there are."""


class PlanOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner found and decided, for the status to tell."""

    survey: Survey
    books: Mapping[str, FamilyBook]
    buying: Buying
    line: GuestLine
    shortages: tuple[StockShortage, ...]
    wanted: int
    """Sleepers that there should be."""
    held: int
    """Sleepers that there are, or that are on their way."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Pods as they are, by type."""

    reserved: Counter[str]
    used: Counter[str]
    waiting: Counter[str]


class ConditionFound(msgspec.Struct, frozen=True):
    type: str
    status: bool
    reason: str
    message: str


def status_of(snapshot: MachineSnapshot, outcome: PlanOutcome) -> dict[str, Any]:
    """All of the status but its conditions."""
    guests, counting, line = outcome.survey.guests, snapshot.spec.counting, outcome.line
    counts = Counts(
        reserved=Counter(map(type_of, filter(is_live_sleeper, snapshot.sleepers.values()))),
        used=Counter(type_of(each) for each in guests if is_operating(each, counting)),
        waiting=Counter(map(type_of, line.waiting)),
    )
    machines = machines_of(snapshot.spec.machine_types, outcome, counts)
    most = most_shown(snapshot)
    return {
        "observedGeneration": snapshot.machine.metadata.generation,
        "acceptedGeneration": snapshot.accepted_generation,
        "availableMachines": machines,
        "summary": summary_of(machines),
        "holders": holders_of(snapshot, line.holders, most),
        "waiting": waiting_of(line.waiting, line.reasons, most),
        "windows": windows_of(snapshot, outcome),
    }


@lru_cache(maxsize=8192)
def time_text(seconds: float) -> str:
    """As the API writes times; kept, for a status tells the same ones again and again."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def usage_of(kind: MachineType, book: FamilyBook, counts: Counts) -> dict[str, int | float]:
    return {
        "maximum": kind.available,
        "reserved": counts.reserved[kind.name],
        "used": number(book.used(kind.name, counts.used)),
        "waiting": counts.waiting[kind.name],
    }


def number(amount: Fraction) -> int | float:
    """Whole where it is; else to the thousandth, as it is printed."""
    return int(amount) if amount.denominator == 1 else round(float(amount), 3)


def machines_of(
    kinds: Iterable[MachineType], outcome: PlanOutcome, counts: Counts
) -> list[dict[str, Any]]:
    return [
        {
            "name": kind.name,
            "usage": usage_of(kind, outcome.books[kind.name], counts),
            "free": free_of(kind, outcome),
        }
        for kind in kinds
    ]


def free_of(kind: MachineType, outcome: PlanOutcome) -> int:
    """How many more could be sold now: what finds no room cannot."""
    if kind.name in outcome.survey.unserved:
        return 0
    unheld: Counter[str] = Counter()
    for each in outcome.shortages:
        unheld[each.type] += each.count
    return outcome.books[kind.name].free(kind.name, unheld)


def summary_of(machines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """One number a type, in the order of the specification: for the columns of `kubectl get`."""
    rows = list(machines)
    summary = {
        name: ",".join(str(row["usage"][name]) for row in rows)
        for name in ("maximum", "reserved", "used", "waiting")
    }
    return {"types": ",".join(row["name"] for row in rows), **summary}


def most_shown(snapshot: MachineSnapshot) -> int:
    """Of one type, so that each has the same."""
    return min(MOST_SHOWN, max(MOST_SHOWN_IN_ALL // max(len(snapshot.spec.machine_types), 1), 1))


def holders_of(
    snapshot: MachineSnapshot, holders: Iterable[Pod], most: int
) -> list[dict[str, Any]]:
    """Guests that have a unit, the oldest sale first, at most so many of a type."""
    lent = lent_seconds(snapshot.spec)
    units = snapshot.units
    shown: Counter[str] = Counter()
    found = []
    ordered = sorted(
        (units[uid].since, uid, pod) for pod in holders if (uid := pod.metadata.uid) in units
    )
    for _, uid, pod in ordered:
        name = type_of(pod)
        if shown[name] >= most:
            continue
        shown[name] += 1
        unit = units[uid]
        row = {
            "type": name,
            "namespace": pod.metadata.namespace,
            "pod": pod.metadata.name,
            "user": user_of(pod, snapshot.namespaces.get(pod.metadata.namespace)),
            "node": unit.node,
            "since": time_text(unit.since),
        }
        if name in lent:
            row["expires"] = time_text(unit.since + lent[name])
        found.append(row)
    return found


def waiting_of(
    line: Iterable[Pod], reasons: Mapping[str, Waiting], most: int
) -> list[dict[str, Any]]:
    """Those who wait, in the order in which they are served, at most so many of a type."""
    shown: Counter[str] = Counter()
    found = []
    for pod in line:
        name = type_of(pod)
        why = reasons.get(pod.metadata.uid)
        if why is None or shown[name] >= most:
            continue
        shown[name] += 1
        found.append(
            {
                "type": name,
                "namespace": pod.metadata.namespace,
                "pod": pod.metadata.name,
                "since": pod.metadata.creation_timestamp or "",
                "reason": why.reason.value,
                "message": why.message,
            }
        )
    return found


def shortage_words(shortages: Iterable[StockShortage]) -> str:
    return "; ".join(
        f"{each.count} of {each.type} find no room"
        + (f": {each.node}: {each.words}" if each.node else f": {each.words}")
        for each in shortages
    )


def windows_of(snapshot: MachineSnapshot, outcome: PlanOutcome) -> list[dict[str, Any]]:
    """The running or the next occurrence of each window, what is held for it, and what is short.

    What is free is held for the window that starts first. `freedBy` is when the last lease ends
    that would have to, if all holders keep to theirs.
    """
    found = []
    for kind in snapshot.spec.machine_types:
        free = outcome.books[kind.name].free(kind.name) if kind.windows else 0
        held: dict[str, int] = {}
        short: dict[str, int] = {}
        for name, needed in outcome.buying.held_for_windows(kind.name, None).items():
            held[name] = min(needed, free)
            short[name] = needed - held[name]
            free -= held[name]
        for window in kind.windows:
            times = occurrence(window, snapshot.now)
            if times is None:
                continue
            row: dict[str, Any] = {
                "type": kind.name,
                "name": window.name,
                "start": time_text(times.start.timestamp()),
                "end": time_text(times.end.timestamp()),
                "units": window.units,
                "held": held.get(window.name, 0),
                "short": short.get(window.name, 0),
            }
            if freed := freed_by(snapshot, outcome, kind, window, row["short"]):
                row["freedBy"] = freed
            found.append(row)
    return found


def freed_by(
    snapshot: MachineSnapshot, outcome: PlanOutcome, kind: MachineType, window: Window, short: int
) -> str | None:
    """Of those who hold units that are not for them."""
    if short <= 0 or kind.max_duration is None:
        return None
    units, lasts = snapshot.units, duration_of(kind.max_duration).total_seconds()
    ends = sorted(
        units[uid].since + lasts
        for pod in outcome.survey.holders
        if type_of(pod) == kind.name
        and (uid := pod.metadata.uid) in units
        and not may_buy(window.buyers, outcome.buying.namespace(pod.metadata.namespace))
    )
    return time_text(ends[short - 1]) if len(ends) >= short else None


def conditions_of(snapshot: MachineSnapshot, outcome: PlanOutcome) -> tuple[ConditionFound, ...]:
    return (
        accepted_condition(snapshot.faults),
        stock_condition(outcome),
        served_condition(outcome.survey.unserved),
        ready_condition(snapshot, outcome),
    )


def accepted_condition(faults: Sequence[str]) -> ConditionFound:
    if faults:
        return ConditionFound("Accepted", False, "Invalid", "; ".join(faults))
    return ConditionFound("Accepted", True, "Accepted", "the specification is in force")


def stock_condition(outcome: PlanOutcome) -> ConditionFound:
    if outcome.shortages:
        return ConditionFound("StockShort", True, "NoRoom", shortage_words(outcome.shortages))
    return ConditionFound("StockShort", False, "StockHeld", "all stock has its place")


def served_condition(unserved: Sequence[str]) -> ConditionFound:
    if unserved:
        words = f"no node of the pool serves {', '.join(unserved)}"
        return ConditionFound("Unserved", True, "NoNode", words)
    return ConditionFound("Unserved", False, "Served", "every type has a node that serves it")


def ready_condition(snapshot: MachineSnapshot, outcome: PlanOutcome) -> ConditionFound:
    """Stays true while units change hands: what is on its way is as good as held."""
    if snapshot.faults:
        return ConditionFound(
            "Ready", False, "NotAccepted", "the newest specification was not accepted"
        )
    if outcome.shortages:
        away = [each.type for each in outcome.shortages if not each.node]
        reason = "NodesUnavailable" if away else "StockShort"
        return ConditionFound("Ready", False, reason, shortage_words(outcome.shortages))
    was_ready = any(
        each.type == "Ready" and each.status == "True"
        for each in snapshot.machine.status.conditions
    )
    if outcome.held < outcome.wanted and not was_ready:
        words = "stock is being set up"
        return ConditionFound("Ready", False, "StockPending", words)
    return ConditionFound("Ready", True, "StockHeld", "what is not sold is held")
