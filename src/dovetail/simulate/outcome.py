"""What a replay found, and the stopwatch that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

import msgspec


class Outcome(msgspec.Struct, kw_only=True):
    figures: dict[str, float] = {}
    """By name; shares are in percent of the capacity in devices."""
    curve: list[tuple[float, float, float]] = []
    """Demand so far, allocated, fragmented; for plots."""
    times: list[int] = []
    """Nanoseconds that each decision took."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        start = perf_counter_ns()
        yield
        self.times.append(perf_counter_ns() - start)
