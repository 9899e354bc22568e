"""The protocol of departures: tasks come and go at the times of the workload.

Shares are means over the time from the first arrival to the last. A production trace may ask little
of its fleet at any one time. Up to a given load every task then comes four times, a quarter of the
trace apart, and lifetimes are stretched, all by one factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dovetail.engine.rank import PressureWatch, Ranking
from dovetail.engine.rank.parse import Terms
from dovetail.simulate.arrivals import shuffled
from dovetail.simulate.errors import BadPlan
from dovetail.simulate.floor import Floor, Hold
from dovetail.simulate.gauge import Gauge
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Task, Workload, typical_of

ROUNDS = 4
MOST_STRETCH = 2**20

LEAVE, ARRIVE, PASS_BY = range(3)
"""In the order in which they happen at one time; who passes by leaves when he arrives."""


class Visit(msgspec.Struct, frozen=True):
    """A task with its times and what it takes."""

    task: Task
    comes: int
    goes: int | None
    units: int

    def leaves(self, stretch: int) -> int | None:
        return None if self.goes is None else self.comes + stretch * (self.goes - self.comes)

    def within(self, end: int, stretch: int) -> int:
        """How long it stays before the end."""
        leaves = self.leaves(stretch)
        return (end if leaves is None else min(end, leaves)) - self.comes


def replay(workload: Workload, terms: Terms, seed: int, load: int | None) -> Outcome:
    typical = typical_of(workload.tasks)
    order = shuffled(workload, np.random.default_rng(seed))
    floor = Floor(workload.fleet, order, Ranking(terms, typical, PressureWatch()))
    gauge = Gauge(floor.snapshot, typical)
    visits = [visit(workload, task, gauge) for task in workload.tasks]
    if len({each.comes for each in visits}) < 2:
        raise BadPlan(f"{workload.name}: all tasks arrive at once, so no time passes")
    if load is not None:
        visits = rounds(visits)
    visits.sort(key=lambda each: each.comes)
    stretch = 1 if load is None else stretched(visits, gauge, load)
    return Days(floor, gauge, visits, stretch).run()


def visit(workload: Workload, task: Task, gauge: Gauge) -> Visit:
    if task.arrives is None:
        raise BadPlan(f"{workload.name}: task {task.name} has no times to come and go at")
    return Visit(task, task.arrives, task.ends, gauge.units(task.requests[0]))


def rounds(visits: Sequence[Visit]) -> list[Visit]:
    """Every task several times; what would come after the last arrival comes at the beginning."""
    start, end = min(each.comes for each in visits), max(each.comes for each in visits)
    found = []
    for number in range(ROUNDS):
        for each in visits:
            comes = start + (each.comes - start + number * (end - start) // ROUNDS) % (end - start)
            goes = None if each.goes is None else each.goes - each.comes + comes
            found.append(Visit(each.task, comes, goes, each.units))
    return found


def stretched(visits: Sequence[Visit], gauge: Gauge, load: int) -> int:
    """The smallest factor on lifetimes with which mean demand reaches the load, in percent."""
    start, end = visits[0].comes, visits[-1].comes
    wanted = load * gauge.capacity * (end - start)

    def reached(stretch: int) -> bool:
        return 100 * sum(each.units * each.within(end, stretch) for each in visits) >= wanted

    if not reached(MOST_STRETCH):
        raise BadPlan(f"these tasks cannot load the fleet to {load}%, however long they stay")
    low, high = 0, MOST_STRETCH
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


class Days:
    """The events in order; at the same time those who go make room for those who come."""

    def __init__(self, floor: Floor, gauge: Gauge, visits: Sequence[Visit], stretch: int) -> None:
        self._floor, self._gauge, self._visits, self._stretch = floor, gauge, visits, stretch
        self._holds: dict[int, Hold] = {}
        self._now = visits[0].comes
        self._allocated = self._most = self._area = self._dropped = 0
        self._outcome = Outcome()

    def run(self) -> Outcome:
        start, end = self._visits[0].comes, self._visits[-1].comes
        for time, what, number in self._events(end):
            self._area += self._allocated * (time - self._now)
            self._now = time
            if what == ARRIVE:
                self._arrive(number)
            else:
                self._leave(number)
        demand = sum(each.units * each.within(end, self._stretch) for each in self._visits)
        self._outcome.figures = {
            "demanded": self._gauge.share(demand) / (end - start),
            "allocated": self._gauge.share(self._area) / (end - start),
            "peak": self._gauge.share(self._most),
            "fragmented": self._gauge.fragmented(),
            "tasks": len(self._visits),
            "dropped": self._dropped,
            "stretch": self._stretch,
        }
        return self._outcome

    def _events(self, end: int) -> list[tuple[int, int, int]]:
        events = []
        for number, each in enumerate(self._visits):
            events.append((each.comes, ARRIVE, number))
            leaves = each.leaves(self._stretch)
            if leaves is not None and leaves <= end:
                events.append((leaves, LEAVE if leaves > each.comes else PASS_BY, number))
        return sorted(events)

    def _arrive(self, number: int) -> None:
        each = self._visits[number]
        with self._outcome.timed():
            hold = self._floor.place(each.task.requests[0])
        if hold is None:
            self._dropped += 1
            return
        self._holds[number] = hold
        self._allocated += each.units
        self._most = max(self._most, self._allocated)

    def _leave(self, number: int) -> None:
        hold = self._holds.pop(number, None)
        if hold is not None:
            self._floor.release(hold)
            self._allocated -= self._visits[number].units
