"""Column generation (Gilmore and Gomory): the linear relaxation of packing, by patterns.

How many nodes of each class get each pattern is a linear program, but for being whole numbers, and
its relaxation tells nearly always what the whole numbers do. Its patterns are too many to list, so
it begins with none and adds, as long as there are any, those that are worth more at the prices of
the present solution than a node of their class costs: a knapsack for each class (`patterns`). It
ends since there are finitely many patterns and each is added once; pivots and knapsacks are counted
against the budget.

If pods are left over in the relaxation, they are in every packing, and the prices show it in whole
numbers (`prices`): floats find a proof here, they are none. If not, rounding down leaves a few pods
and nodes over, for which the same is done again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dovetail.core.columns import Floats
from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.prices import KNAPSACK_STEPS
from dovetail.podfit.packing.solver.problem import Counts, StepBudget

TINY = 1e-9
UNIT = 2**40
"""What a price of one is in whole numbers."""
MOST_ROWS = 400
"""Of the linear program: kinds and classes. With more, a pivot takes too long."""


class LinearSolution(msgspec.Struct, frozen=True):
    left_over: float
    """Pods."""
    prices: Counts
    """By kind, in whole numbers."""
    used: tuple[tuple[int, Counts, float], ...]
    """Classes, patterns, and how many nodes have them."""


class LinearProgram:
    """Rows: each kind is placed or left over, each class has no more nodes than it has.

    Solved by the primal simplex method with a dense inverse of the basis. To leave all pods over
    and all nodes empty is the solution that it begins with.
    """

    def __init__(
        self, counts: Counts, patterns: Sequence[NodePatterns], budget: StepBudget
    ) -> None:
        self._patterns, self._budget = patterns, budget
        self._kinds, self._classes = len(counts), len(patterns)
        rows = self._kinds + self._classes
        self._limits: Floats = np.array([*counts, *(each.of.size for each in patterns)], np.float64)
        surplus = -np.eye(rows)[:, : self._kinds]
        self._columns: Floats = np.concatenate((np.eye(rows), surplus), axis=1)
        self._costs: Floats = np.zeros(rows + self._kinds)
        self._costs[: self._kinds] = 1
        self._added: list[tuple[int, Counts]] = []
        """Of the columns behind the first."""
        self._first = rows + self._kinds
        self._known: set[tuple[int, Counts]] = set()
        self._basis = list(range(rows))
        self._inverse: Floats = np.eye(rows)
        self._values = self._limits.copy()

    def solution(self) -> LinearSolution:
        """Raises BudgetSpent."""
        while True:
            self._pivot_to_best()
            duals = self._duals()
            prices = tuple(max(round(each * UNIT), 0) for each in duals[: self._kinds].tolist())
            if not self._add_columns(prices, duals):
                return self._found(prices)

    def add(self, node_class: int, pattern: Counts) -> bool:
        """A column; False if it is there already."""
        if (node_class, pattern) in self._known:
            return False
        self._known.add((node_class, pattern))
        self._added.append((node_class, pattern))
        column = np.zeros((len(self._limits), 1))
        column[: self._kinds, 0] = pattern
        column[self._kinds + node_class, 0] = 1
        self._columns = np.concatenate((self._columns, column), axis=1)
        self._costs = np.append(self._costs, 0.0)
        return True

    def _add_columns(self, prices: Counts, duals: Floats) -> bool:
        """The best pattern of each class that pays; False if there is none."""
        found = False
        for at, each in enumerate(self._patterns):
            with self._budget.part(KNAPSACK_STEPS) as part:
                _, pattern = each.best(prices, part)
            worth = sum(count * price for count, price in zip(pattern, prices, strict=True)) / UNIT
            if worth + duals[self._kinds + at] > TINY * 100:
                found |= self.add(at, pattern)
        return found

    def _duals(self) -> Floats:
        found: Floats = self._costs[self._basis] @ self._inverse
        return found

    def _pivot_to_best(self) -> None:
        """Until no column improves the solution. Ties go to the first, so that it ends."""
        rows = len(self._limits)
        for pivot in range(100 * rows):
            self._budget.spend(4 + rows * rows // 2000)
            gains = self._duals() @ self._columns - self._costs
            gains[self._basis] = 0
            # The steepest at first; the first of all after many, which cannot go round in circles.
            entering = int(gains.argmax()) if pivot < 20 * rows else int((gains > TINY).argmax())
            if gains[entering] <= TINY:
                return
            direction = self._inverse @ self._columns[:, entering]
            rising = direction > TINY
            if not rising.any():
                return
            ratios = np.full(rows, np.inf)
            ratios[rising] = self._values[rising] / direction[rising]
            tied = np.flatnonzero(ratios <= ratios.min() + TINY).tolist()
            leaving = min(tied, key=lambda row: self._basis[row])
            self._exchange(leaving, entering, direction, anew=pivot % 64 == 63)

    def _exchange(self, leaving: int, entering: int, direction: Floats, *, anew: bool) -> None:
        """`anew`: the inverse is made from the columns, before errors of floats add up."""
        self._basis[leaving] = entering
        if anew:
            self._inverse = np.linalg.inv(self._columns[:, self._basis]).astype(np.float64)
        else:
            row = self._inverse[leaving] / direction[leaving]
            self._inverse -= np.outer(direction, row)
            self._inverse[leaving] = row
        self._values = np.maximum(self._inverse @ self._limits, 0)

    def _found(self, prices: Counts) -> LinearSolution:
        used = []
        left_over = 0.0
        for at, value in zip(self._basis, self._values.tolist(), strict=True):
            if at < self._kinds:
                left_over += value
            elif at >= self._first and value > TINY:
                node_class, pattern = self._added[at - self._first]
                used.append((node_class, pattern, value))
        return LinearSolution(left_over, prices, tuple(used))
