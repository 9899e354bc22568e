"""Interned keys: equal keys share a number, and a rule is asked once per distinct key.

A fleet has many providers, nodes and pods but few distinct trait sets, taint sets and label sets.
Each distinct key has a number; an answer is an array by number, which the finders spread over all
rows with one `take`. An answer is kept and only brought up to date with keys that came since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

K = TypeVar("K", bound=Hashable)

MOST_ANSWERS = 2048
"""Kept at a time. Beyond that all are forgotten and made again as they are asked for."""


class KeptAnswer:
    """An array by number, true for the first `upto` keys of the log."""

    __slots__ = ("table", "upto")

    def __init__(self, dtype: DTypeLike) -> None:
        self.table: NDArray[Any] = np.zeros(1, dtype)
        self.upto = 0


class Interned(Generic[K]):
    """Keys by number. Number 0 is `first`, or nothing: then no key has it and no rule chooses it.

    Keys that come and go are taken and given back, and their numbers used again, so what is no
    more leaves nothing behind. Keys that stay are just numbered.
    """

    def __init__(self, first: K | None = None, most_answers: int = MOST_ANSWERS) -> None:
        """`most_answers`: fewer where callers make the names of rules up, and long ones."""
        self._most_answers = most_answers
        self.keys: list[K | None] = [first]
        self._uses: list[int] = [0]
        self._numbers: dict[K, int] = {}
        self._unused: list[int] = []
        self._log: list[int] = []
        self._answers: dict[Hashable, KeptAnswer] = {}
        if first is not None:
            self._numbers[first] = 0
            self._log.append(0)

    def __len__(self) -> int:
        """Numbers there are, those without a key included: how long an answer is."""
        return len(self.keys)

    def find(self, key: K) -> int | None:
        return self._numbers.get(key)

    def number(self, key: K) -> int:
        """The key's number, for good."""
        found = self._numbers.get(key)
        return self._add(key) if found is None else found

    def take(self, key: K) -> int:
        """The key's number, with one user more."""
        number = self.number(key)
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

    def copy(self) -> Self:
        """One that goes on by itself; its answers are worked out anew."""
        twin = type(self)()
        twin.keys, twin._uses = list(self.keys), list(self._uses)
        twin._numbers, twin._unused = dict(self._numbers), list(self._unused)
        twin.forget()
        return twin

    def forget(self) -> None:
        """Drop all answers: what rules depend on has changed, or they became too many."""
        self._answers.clear()
        self._log = list(self._numbers.values())

    def decided(
        self, name: Hashable, rule: Callable[[K], object], dtype: DTypeLike = np.bool_
    ) -> NDArray[Any]:
        """By number, what `rule` says of the key. The same `name` must stand for the same rule."""
        answer = self._answers.get(name)
        if answer is None:
            if len(self._answers) >= self._most_answers:
                self.forget()
            answer = self._answers[name] = KeptAnswer(dtype)
        if answer.upto < len(self._log):
            self._catch_up(answer, rule)
        found = answer.table[: len(self.keys)]
        found.flags.writeable = False  # Others are given the same one.
        return found

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

    def _catch_up(self, answer: KeptAnswer, rule: Callable[[K], object]) -> None:
        if len(answer.table) < len(self.keys):
            table = np.zeros(len(self.keys) * 3 // 2, answer.table.dtype)
            table[: len(answer.table)] = answer.table
            answer.table = table
        for number in self._log[answer.upto :]:
            key = self.keys[number]
            answer.table[number] = rule(key) if key is not None else 0
        answer.upto = len(self._log)
