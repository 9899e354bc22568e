"""Times of many calls, and what is typical of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Times:
    milliseconds: list[float] = field(default_factory=list)

    def percentile(self, share: int) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]

    @contextmanager
    def one(self) -> Iterator[None]:
        began = perf_counter()
        yield
        self.milliseconds.append((perf_counter() - began) * 1e3)
