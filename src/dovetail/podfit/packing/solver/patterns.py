"""Patterns: what one node of a class can take, all that are maximal or the one worth most.

A pattern within another can be left away in a search: who has room for more has room for less, and
a pod that is placed early need not be placed later. So only patterns are listed to which nothing
can be added. Both functions go through kinds in turn, the most that fit first; there are finitely
many, but exponentially so in the number of kinds, hence the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dovetail.core.columns import Amounts
from dovetail.podfit.packing.solver.problem import (
    BudgetSpent,
    Counts,
    NodeClass,
    PackingProblem,
    StepBudget,
)

Needs = list[tuple[tuple[int, int], ...]]
"""By kind: resources, and how much of them it wants."""


def patterns_of(problem: PackingProblem) -> list[NodePatterns]:
    """By class of nodes."""
    needs = [
        tuple((at, each) for at, each in enumerate(amounts) if each) for amounts in problem.amounts
    ]
    if not problem.classes:
        return []
    free: Amounts = np.array([each.free for each in problem.classes], np.int64)
    alone = [
        np.minimum((free[:, wanted] // amounts[wanted]).min(axis=1), count)
        for amounts, wanted, count in (
            (np.array(each, np.int64), np.flatnonzero(each), problem.counts[kind])
            for kind, each in enumerate(problem.amounts)
        )
    ]
    return [
        NodePatterns(each, needs, fitting)
        for each, fitting in zip(problem.classes, np.stack(alone, axis=1).tolist(), strict=True)
    ]


class NodePatterns:
    """Of one class of nodes."""

    def __init__(self, of: NodeClass, needs: Needs, fitting: Sequence[int]) -> None:
        """`fitting`: how many of each kind there is room for."""
        self.of, self._needs = of, needs
        caps = [0] * len(fitting)
        for kind in of.kinds:
            one = of.apart is not None and of.apart[kind] >> kind & 1
            caps[kind] = min(fitting[kind], 1) if one else fitting[kind]
        self.caps = tuple(caps)
        """By kind: how many of it alone."""

    def room(self, kind: int, free: Sequence[int], there: int) -> int:
        """How many more of a kind; `there`: a bit for each kind that is on the node already."""
        apart = self.of.apart
        if apart is not None and apart[kind]:
            if apart[kind] & there:
                return 0
            if apart[kind] >> kind & 1:
                return min(1, self._fitting(kind, free))
        return self._fitting(kind, free)

    def _fitting(self, kind: int, free: Sequence[int]) -> int:
        return min(free[at] // amount for at, amount in self._needs[kind])

    def less(self, free: Sequence[int], kind: int, count: int) -> list[int]:
        """What is free with so many of a kind there."""
        found = list(free)
        for at, amount in self._needs[kind]:
            found[at] -= amount * count
        return found

    def present(self, pattern: Sequence[int]) -> int:
        """A bit for each kind that is in it, where it makes a difference."""
        if self.of.apart is None:
            return 0
        return sum(1 << kind for kind, count in enumerate(pattern) if count)

    def maximal(self, left: Counts, budget: StepBudget) -> Iterator[Counts]:
        """Patterns of what is left to which nothing that is left can be added."""
        return _MaximalPatterns(self, left, budget).below(0, self.of.free)

    def best(self, prices: Counts, budget: StepBudget) -> tuple[int, Counts]:
        """The most that a pattern is worth, and that pattern: a knapsack, by branch and bound.

        Where the budget ends first, the pattern is the best so far and its worth an upper bound.
        """
        kinds = [kind for kind in self.of.kinds if prices[kind] > 0 and self.caps[kind]]
        # Those that pay most for the share of the node that they take come first.
        kinds.sort(key=lambda kind: prices[kind] / self._share(kind), reverse=True)
        knapsack = _Knapsack(self, kinds, prices, budget)
        pattern = [0] * len(prices)
        bound = knapsack.bound(0, self.of.free)
        try:
            knapsack.fill(0, self.of.free, pattern, 0)
        except BudgetSpent:
            return bound, knapsack.pattern
        return knapsack.worth, knapsack.pattern

    def _share(self, kind: int) -> float:
        """Of the node that one of the kind takes: of the resource that it takes the most of."""
        return max(amount / self.of.free[at] for at, amount in self._needs[kind])

    def rates(self, kinds: Sequence[int], prices: Counts) -> list[list[tuple[int, int] | None]]:
        """By place in `kinds` and resource: the best price for one unit that it or one behind it
        pays, as a fraction. None: one of them wants nothing of it."""
        found: list[list[tuple[int, int] | None]] = [[(0, 1)] * len(self.of.free)]
        for kind in reversed(kinds):
            amounts = dict(self._needs[kind])
            price, after = prices[kind], found[-1]
            rates: list[tuple[int, int] | None] = []
            for at, rate in enumerate(after):
                amount = amounts.get(at)
                if rate is None or amount is None:
                    rates.append(None)
                else:
                    better = price * rate[1] > rate[0] * amount
                    rates.append((price, amount) if better else rate)
            found.append(rates)
        return found[::-1]


class _MaximalPatterns:
    """One listing of the maximal patterns."""

    def __init__(self, patterns: NodePatterns, left: Counts, budget: StepBudget) -> None:
        self._patterns, self._left, self._budget = patterns, left, budget
        self._kinds = [kind for kind in patterns.of.kinds if left[kind] and patterns.caps[kind]]
        self._pattern = [0] * len(left)

    def below(self, at: int, free: Sequence[int]) -> Iterator[Counts]:
        """With the kinds before `at` as they are."""
        self._budget.spend()
        if at == len(self._kinds):
            if not self._takes_more(free):
                yield tuple(self._pattern)
            return
        patterns, kind = self._patterns, self._kinds[at]
        room = patterns.room(kind, free, patterns.present(self._pattern))
        most = min(self._left[kind], room)
        # The last kind takes all that it can: with less the pattern is not maximal.
        least = most if at == len(self._kinds) - 1 else 0
        for count in range(most, least - 1, -1):
            self._pattern[kind] = count
            yield from self.below(at + 1, patterns.less(free, kind, count))
        self._pattern[kind] = 0

    def _takes_more(self, free: Sequence[int]) -> bool:
        there = self._patterns.present(self._pattern)
        return any(
            self._pattern[kind] < self._left[kind] and self._patterns.room(kind, free, there)
            for kind in self._kinds
        )


class _Knapsack:
    """One search for the best pattern."""

    def __init__(
        self, patterns: NodePatterns, kinds: Sequence[int], prices: Counts, budget: StepBudget
    ) -> None:
        self._patterns, self._kinds, self._prices = patterns, kinds, prices
        self._budget = budget
        self._rates = patterns.rates(kinds, prices)
        self._rest = [0] * (len(kinds) + 1)
        for at in range(len(kinds) - 1, -1, -1):
            kind = kinds[at]
            self._rest[at] = self._rest[at + 1] + prices[kind] * patterns.caps[kind]
        self.worth = 0
        self.pattern: Counts = (0,) * len(prices)

    def bound(self, at: int, free: Sequence[int]) -> int:
        """What kinds from there on can add at most: all of the room of one resource, sold at the
        best rate that any of them pays."""
        found = self._rest[at]
        for room, rate in zip(free, self._rates[at], strict=True):
            if rate is not None:
                found = min(found, room * rate[0] // rate[1])
        return found

    def fill(self, at: int, free: Sequence[int], pattern: list[int], worth: int) -> None:
        self._budget.spend()
        if worth > self.worth:
            self.worth, self.pattern = worth, tuple(pattern)
        if at == len(self._kinds) or worth + self.bound(at, free) <= self.worth:
            return
        kind = self._kinds[at]
        there = self._patterns.present(pattern)
        most = min(self._patterns.caps[kind], self._patterns.room(kind, free, there))
        for count in range(most, -1, -1):
            pattern[kind] = count
            self.fill(
                at + 1,
                self._patterns.less(free, kind, count),
                pattern,
                worth + count * self._prices[kind],
            )
        pattern[kind] = 0
