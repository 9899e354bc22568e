"""Work in steps: a generator that yields often, so that its caller can look at the clock.

Searches, rankings and explanations are made of it. A step is a bounded piece of work, a few
milliseconds at the most however large the request is; `service.time_budget` lets others run between
steps. Who needs no such thing takes `finished` work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Work: TypeAlias = Generator[None, None, T]
"""Yields now and then and returns its result."""


SLOTS_PER_YIELD = 16
"""Slots that one step may look at in a few trees. A yield passes through all generators on the way
to the clock, which costs more than the look."""


def is_step(at: int) -> bool:
    """Whether a step ends with the slot at this place."""
    return at % SLOTS_PER_YIELD == SLOTS_PER_YIELD - 1


def finished(work: Work[T]) -> T:
    """The result of all the steps, in one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
