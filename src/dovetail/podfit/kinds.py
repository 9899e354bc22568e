"""Interned keys with remembered decisions: a rule is asked once per distinct key.

A fleet has many nodes and pods but few distinct taint sets and label sets. Each distinct one has a
number while something uses it; a decision is an array by number, to be spread over rows by `take`.
Numbers are used again, so what comes and goes leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

K = TypeVar("K", bound=Hashable)

MOST_DECISIONS = 2048
"""Kept at a time. Beyond that all are forgotten and made again as they are asked for."""


class Decision:
    """An array by number, true for the first `upto` keys of the log."""

    __slots__ = ("table", "upto")

    def __init__(self, dtype: DTypeLike) -> None:
        self.table: NDArray[Any] = np.zeros(1, dtype)
        self.upto = 0


class Kinds(Generic[K]):
    """Number 0 is nothing: no key has it, and no rule chooses it."""

    def __init__(self) -> None:
        self.keys: list[K | None] = [None]
        self._uses: list[int] = [0]
        self._numbers: dict[K, int] = {}
        self._unused: list[int] = []
        self._log: list[int] = []
        self._decisions: dict[Hashable, Decision] = {}

    def take(self, key: K) -> int:
        """The key's number, with one user more."""
        number = self._numbers.get(key)
        if number is None:
            number = self._add(key)
        self._uses[number] += 1
        return number

    def give(self, number: int) -> None:
        """One user less; without any, the key is forgotten."""
        key = self.keys[number]
        if key is None:
            return
        self._uses[number] -= 1
        if self._uses[number] == 0:
            del self._numbers[key]
            self.keys[number] = None
            self._unused.append(number)

    def _add(self, key: K) -> int:
        if self._unused:
            number = self._unused.pop()
            self.keys[number] = key
        else:
            number = len(self.keys)
            self.keys.append(key)
            self._uses.append(0)
        self._numbers[key] = number
        self._log.append(number)
        if len(self._log) > 4 * len(self.keys) + 1000:
            self.forget()
        return number

    def forget(self) -> None:
        """Drop all decisions: what rules depend on has changed, or they became too many."""
        self._decisions.clear()
        self._log = list(self._numbers.values())

    def decided(
        self, name: Hashable, rule: Callable[[K], object], dtype: DTypeLike = np.bool_
    ) -> NDArray[Any]:
        """By number, what `rule` says of the key. The same `name` must stand for the same rule."""
        decision = self._decisions.get(name)
        if decision is None:
            if len(self._decisions) >= MOST_DECISIONS:
                self.forget()
            decision = self._decisions[name] = Decision(dtype)
        if decision.upto < len(self._log):
            self._catch_up(decision, rule)
        return decision.table

    def _catch_up(self, decision: Decision, rule: Callable[[K], object]) -> None:
        if len(decision.table) < len(self.keys):
            table = np.zeros(len(self.keys) * 3 // 2, decision.table.dtype)
            table[: len(decision.table)] = decision.table
            decision.table = table
        for number in self._log[decision.upto :]:
            key = self.keys[number]
            decision.table[number] = rule(key) if key is not None else 0
        decision.upto = len(self._log)
