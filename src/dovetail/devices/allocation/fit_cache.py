"""Answers that hold for a state: nodes whose devices have alike units left share them."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from dovetail.devices.allocation.arrays import Ints
from dovetail.devices.allocation.node_devices import Pairs

QUESTIONS = 256
"""Kept at a time; the oldest goes first."""

ROOM = 1024
"""States that are gone are forgotten when they are more than twice those in use, and this."""

NEVER = -1

Answer = Callable[[Pairs], float]


class FitCache:
    """Numbers for states, the state of each row, and per question what was found of each state."""

    def __init__(self) -> None:
        self._numbers: dict[Pairs, int] = {}
        self._pairs: list[Pairs] = []
        self._answers: dict[Hashable, NDArray[np.float64]] = {}
        self._of_row: Ints = np.zeros(0, np.int64)
        self._looked_at: Ints = np.zeros(0, np.int64)
        self._shaping = NEVER

    def renew(self, shaping: int, nodes: int, rows: int) -> None:
        """Forgets all if shapes are no longer what they were, or most states are gone."""
        if self._shaping != shaping or len(self._pairs) > 2 * nodes + ROOM:
            self._shaping = shaping
            self._numbers.clear()
            self._pairs.clear()
            self._answers.clear()
            self._of_row = np.zeros(0, np.int64)
            self._looked_at = np.zeros(0, np.int64)
        lacking = rows - len(self._of_row)
        if lacking > 0:
            self._of_row = np.append(self._of_row, np.zeros(lacking, np.int64))
            self._looked_at = np.append(self._looked_at, np.full(lacking, NEVER))

    def of_rows(self, rows: Ints, recounted_at: Ints, state: Callable[[int], Pairs]) -> Ints:
        """The state of each row; worked out for those that were counted again since."""
        for row in rows[self._looked_at[rows] < recounted_at[rows]].tolist():
            self._of_row[row] = self._number(state(row))
        self._looked_at[rows] = recounted_at[rows]
        return self._of_row[rows]

    def _number(self, state: Pairs) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._pairs)
            self._pairs.append(state)
        return found

    def answers(self, question: Hashable, states: Ints, answer: Answer) -> NDArray[np.float64]:
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
