"""Answers that hold for a state: nodes whose devices have alike units left share them."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from dovetail.classes.stock import Pairs

QUESTIONS = 256
"""Kept at a time; the oldest goes first."""

ROOM = 1024
"""States that are gone are forgotten when they are more than twice those in use, and this."""

Answer = Callable[[Pairs], float]


class States:
    """Numbers for states, and for each question what was found of each state."""

    def __init__(self) -> None:
        self._numbers: dict[Pairs, int] = {}
        self._pairs: list[Pairs] = []
        self._answers: dict[Hashable, NDArray[np.float64]] = {}

    def clear(self) -> None:
        self._numbers.clear()
        self._pairs.clear()
        self._answers.clear()

    def is_crowded(self, nodes: int) -> bool:
        return len(self._pairs) > 2 * nodes + ROOM

    def number(self, state: Pairs) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._pairs)
            self._pairs.append(state)
        return found

    def answers(
        self, question: Hashable, states: NDArray[np.int64], answer: Answer
    ) -> NDArray[np.float64]:
        """One for each of the states; only those that were never asked are worked out."""
        known = self._answers.pop(question, None)
        if known is None:
            known = np.full(len(self._pairs), np.nan)
        elif len(known) < len(self._pairs):
            known = np.append(known, np.full(len(self._pairs) - len(known), np.nan))
        for state in np.unique(states[np.isnan(known[states])]).tolist():
            known[state] = answer(self._pairs[state])
        # Put at the end: what was asked last is forgotten last.
        self._answers[question] = known
        if len(self._answers) > QUESTIONS:
            del self._answers[next(iter(self._answers))]
        return known[states]
