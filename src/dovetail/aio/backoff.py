"""How long to wait before the next try: longer each time, never twice the same, up to a cap."""

from __future__ import annotations

import random

GROWTH = 2.0
LARGEST_EXPONENT = 60


def pause(tries: int, first: float, cap: float) -> float:
    """After `tries` tries in a row: half of what doubling says, and a random part of the rest.

    The random part keeps many who failed together from coming back together.
    """
    longest = min(cap, first * GROWTH ** min(tries, LARGEST_EXPONENT))
    return longest * (0.5 + random.random() / 2)


class Backoff:
    """Tries of one thing, in a row."""

    def __init__(self, first: float = 0.1, cap: float = 30.0) -> None:
        self._first, self._cap = first, cap
        self._tries = 0

    def next(self) -> float:
        self._tries += 1
        return pause(self._tries - 1, self._first, self._cap)

    def reset(self) -> None:
        self._tries = 0
