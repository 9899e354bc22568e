"""What failed is tried again, but not at once and not for ever as often."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

FIRST_WAIT, LONGEST_WAIT = 3.0, 300.0
"""Seconds; twice as long after each failure."""


class Attempt(NamedTuple):
    what: object
    wait: float
    until: float


class Patience(Generic[K]):
    """By whom it is about. A different attempt, or one after success, need not wait."""

    def __init__(self) -> None:
        self._attempts: dict[K, Attempt] = {}

    def waits(self, key: K, what: object, now: float) -> bool:
        """Whether the same was tried, and it is too early to try it again."""
        last = self._attempts.get(key)
        return last is not None and last.what == what and now < last.until

    def tried(self, key: K, what: object, now: float) -> float:
        """To be told of each attempt; returns how long the same one has to wait after it."""
        last = self._attempts.get(key)
        again = last is not None and last.what == what
        wait = min(2 * last.wait, LONGEST_WAIT) if last and again else FIRST_WAIT
        self._attempts[key] = Attempt(what, wait, now + wait)
        return wait

    def settled(self, key: K) -> None:
        """There is nothing to be done any longer."""
        self._attempts.pop(key, None)

    def keep(self, wanted: Callable[[K], bool]) -> None:
        """Forget all others."""
        self._attempts = {key: each for key, each in self._attempts.items() if wanted(key)}
