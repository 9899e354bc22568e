"""A clock that goes only when told, and one on the wall that can be set apart from it."""

from __future__ import annotations


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now, self._set_by = now, 0.0

    def __call__(self) -> float:
        """What the wall shows."""
        return self.now

    def monotonic(self) -> float:
        return self.now - self._set_by

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def set_back(self, seconds: float) -> None:
        """The clock on the wall alone."""
        self.now -= seconds
        self._set_by -= seconds
