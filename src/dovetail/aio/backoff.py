"""Exponential back-off: how long whoever failed waits before the next try.

`doubling` is the one formula; `jittered` and `full_jitter` spread it at random, so that many who
failed together do not come back together. `Backoff` counts the tries of one thing in a row (an
informer, a binding), `KeyedBackoff` those of many things by key (a reconciler's containers).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

LARGEST_EXPONENT = 60
"""Beyond it any cap is reached, and a float would overflow."""


def doubling(failures: int, first: float, cap: float) -> float:
    """Seconds after so many failures in a row: none after none, then twice as long each time."""
    if failures <= 0:
        return 0.0
    return min(cap, first * 2.0 ** min(failures - 1, LARGEST_EXPONENT))


def jittered(failures: int, first: float, cap: float) -> float:
    """Half of what doubling says, and a random part of the other half."""
    return doubling(failures, first, cap) * (0.5 + random.random() / 2)


def full_jitter(failures: int, first: float, cap: float) -> float:
    """Anything from nothing to what doubling says: for short waits on contended rows."""
    return random.uniform(0.0, doubling(failures, first, cap))


class Backoff:
    """The tries of one thing in a row, with jitter."""

    def __init__(self, first: float = 0.1, cap: float = 30.0) -> None:
        self._first, self._cap = first, cap
        self._failures = 0

    def next(self) -> float:
        """Seconds to wait now that one more try has failed."""
        self._failures += 1
        return jittered(self._failures, self._first, self._cap)

    def reset(self) -> None:
        self._failures = 0


class Attempt(NamedTuple):
    what: object
    failures: int
    until: float


class KeyedBackoff(Generic[K]):
    """The tries of many things, by key and without jitter.

    A different attempt on the same key, or one after success, need not wait.
    """

    def __init__(self, first: float, cap: float) -> None:
        self._first, self._cap = first, cap
        self._attempts: dict[K, Attempt] = {}

    def is_waiting(self, key: K, what: object, now: float) -> bool:
        """Whether the same was tried, and it is too early to try it again."""
        last = self._attempts.get(key)
        return last is not None and last.what == what and now < last.until

    def wait_of(self, key: K) -> float:
        """How long the last attempt had to wait; 0 if there was none."""
        last = self._attempts.get(key)
        return doubling(last.failures, self._first, self._cap) if last is not None else 0.0

    def record(self, key: K, what: object, now: float) -> float:
        """Count an attempt; returns how long the same one has to wait after it."""
        last = self._attempts.get(key)
        failures = last.failures + 1 if last is not None and last.what == what else 1
        wait = doubling(failures, self._first, self._cap)
        self._attempts[key] = Attempt(what, failures, now + wait)
        return wait

    def forget(self, key: K) -> None:
        """There is nothing to be tried any longer."""
        self._attempts.pop(key, None)

    def retain(self, is_wanted: Callable[[K], bool]) -> None:
        """Forget all keys but those."""
        self._attempts = {key: each for key, each in self._attempts.items() if is_wanted(key)}
