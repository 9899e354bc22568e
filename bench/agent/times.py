"""Times of many calls, and what is typical of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, process_time


@dataclass(slots=True)
class Times:
    milliseconds: list[float] = field(default_factory=list)
    of_processor: bool = False
    """Whether it is the time that this process was at work, whatever else the machine did."""

    def percentile(self, share: int) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]

    @contextmanager
    def one(self) -> Iterator[None]:
        clock = process_time if self.of_processor else perf_counter
        began = clock()
        yield
        self.milliseconds.append((clock() - began) * 1e3)
