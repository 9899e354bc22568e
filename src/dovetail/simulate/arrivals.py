"""The protocol of arrivals: tasks come until demand passes a share of capacity, and stay.

All tasks in random order, then tasks drawn with replacement. One that does not fit is dropped.
The first loss is the demand at which more than half a percent of capacity was lost to dropped
tasks, or all there was if that never happened; the area is the mean of what is allocated over the
demand so far.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.engine.rank import PressureWatch, Ranking
from dovetail.engine.rank.parse import Terms
from dovetail.simulate.errors import BadPlan
from dovetail.simulate.floor import Floor
from dovetail.simulate.gauge import Gauge
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Task, Workload, typical_of


def replay(workload: Workload, terms: Terms, seed: int, percent: int) -> Outcome:
    random = np.random.default_rng(seed)
    typical = typical_of(workload.tasks)
    floor = Floor(
        workload.fleet, shuffled(workload, random), Ranking(terms, typical, PressureWatch())
    )
    gauge = Gauge(floor.snapshot, typical)
    run = Run(floor, gauge)
    for task in arriving(workload.tasks, gauge, random, percent):
        run.take(task)
    return run.finish()


def shuffled(workload: Workload, random: np.random.Generator) -> list[int]:
    """A fixed order of the trees."""
    roots = sum(provider.parent is None for provider in workload.fleet.providers)
    order: list[int] = random.permutation(roots).tolist()
    return order


def arriving(
    tasks: tuple[Task, ...], gauge: Gauge, random: np.random.Generator, percent: int
) -> Iterator[Task]:
    """Up to the task with which demand would pass the limit."""
    units = [gauge.units(task.requests[0]) for task in tasks]
    if not any(units):
        raise BadPlan("no task takes as much as a thousandth of a device: demand would never rise")
    demand = 0
    for at in drawn(len(tasks), random):
        demand += units[at]
        if 100 * demand > percent * gauge.capacity:
            return
        yield tasks[at]


def drawn(count: int, random: np.random.Generator) -> Iterator[int]:
    yield from random.permutation(count).tolist()
    while True:
        yield from random.integers(0, count, 1024).tolist()


LOST = 5
"""Thousandths of capacity; more than that is the first loss."""


class Run:
    """Counts what becomes of the tasks."""

    def __init__(self, floor: Floor, gauge: Gauge) -> None:
        self._floor, self._gauge = floor, gauge
        self._outcome = Outcome()
        self._demand = self._allocated = self._across = 0
        self._tasks = self._dropped = self._misses = 0
        self._area = 0
        self._first_loss: float | None = None
        self._can_miss = False

    def take(self, task: Task) -> None:
        units = self._gauge.units(task.requests[0])
        self._tasks += 1
        self._demand += units
        self._can_miss |= len(task.requests) > 1
        with self._outcome.timed():
            granted = first_placed(self._floor, task)
        if granted is None:
            self._dropped += 1
        else:
            self._allocated += units
            self._misses += granted > 0
            self._across += units if granted > 0 else 0
        self._area += units * self._allocated
        lost = self._demand - self._allocated
        if self._first_loss is None and 1000 * lost > LOST * self._gauge.capacity:
            self._first_loss = self._gauge.share(self._demand)
        self._mark()

    def _mark(self) -> None:
        """A point of the curve for each percent of demand."""
        curve, demand = self._outcome.curve, self._gauge.share(self._demand)
        if not curve or int(demand) > int(curve[-1][0]):
            curve.append((demand, self._gauge.share(self._allocated), self._gauge.fragmented()))

    def finish(self) -> Outcome:
        figures = self._outcome.figures
        figures["allocated"] = self._gauge.share(self._allocated)
        if self._can_miss:
            figures["allocated_in_one_half"] = self._gauge.share(self._allocated - self._across)
        passed = [allocated for demand, allocated, _ in self._outcome.curve if demand >= 100]
        if passed:
            figures["allocated_at_100"] = passed[0]
        demand = self._gauge.share(self._demand)
        figures["first_loss"] = demand if self._first_loss is None else self._first_loss
        figures["area"] = self._gauge.share(self._area) / max(self._demand, 1)
        figures["fragmented"] = self._gauge.fragmented()
        figures["tasks"], figures["dropped"] = self._tasks, self._dropped
        if self._can_miss:
            figures["misses"] = self._misses
        return self._outcome


def first_placed(floor: Floor, task: Task) -> int | None:
    """Which of its requests the task was granted."""
    for number, request in enumerate(task.requests):
        if floor.place(request) is not None:
            return number
    return None
