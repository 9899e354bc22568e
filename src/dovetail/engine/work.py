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


def finished(work: Work[T]) -> T:
    """The result of all the steps, in one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
