"""What is replayed: a fleet, and tasks that come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from dovetail.core.fleet import FleetPlan
from dovetail.core.request import Request
from dovetail.engine.rank import Typical


class Task(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    requests: tuple[Request, ...]
    """Tried in this order; the later ones are what would do if need be."""
    typical: Request
    """What counts of it as a typical request."""
    arrives: int | None = None
    ends: int | None = None
    """In seconds; None for a task that stays."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    fleet: FleetPlan
    tasks: tuple[Task, ...]


def typical_of(tasks: Iterable[Task]) -> Typical:
    """The most frequent of what the tasks ask for."""
    # Requests hold dictionaries: the same request is the same object, or counted again by `of`.
    seen = {id(task.typical): task.typical for task in tasks}
    counts = Counter(id(task.typical) for task in tasks)
    return Typical.of((seen[key], count) for key, count in counts.items())
