"""Bounds by prices: pods that are worth more than all nodes can hold do not fit.

Any prices of the kinds make a bound. A node holds no pattern worth more than the best there is for
its class, so nodes together hold no more than the sum of these; what is wanted must not be worth
more. Prices of one for a kind bound how many of it fit alone, a resource's amounts as prices bound
that resource (by what patterns can really use of it), and the best prices of all are the dual
solution of the linear relaxation (`columns`). All are whole numbers: a bound is a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.problem import Counts, PackingProblem, StepBudget

KNAPSACK_STEPS = 500
"""For the best pattern of one class; its bound is used where they are not enough."""


class PriceBound:
    def __init__(
        self, prices: Counts, patterns: Sequence[NodePatterns], budget: StepBudget
    ) -> None:
        self._prices = prices
        self._worth: list[int] = []
        """Of the best pattern, by class."""
        self._after = [0] * (len(patterns) + 1)
        """What all nodes of the classes from there on can hold."""
        for each in patterns:
            part = budget.part(KNAPSACK_STEPS)
            self._worth.append(each.best(prices, part)[0])
            budget.spend(part.spent)
        for at in range(len(patterns) - 1, -1, -1):
            self._after[at] = self._after[at + 1] + self._worth[at] * patterns[at].of.size

    def allows(self, left: Counts, node_class: int = 0, nodes: int | None = None) -> bool:
        """Whether nodes from that class on, of it only so many, may hold what is left."""
        held = self._after[node_class]
        if nodes is not None:
            held = self._after[node_class + 1] + nodes * self._worth[node_class]
        return sum(map(_product, left, self._prices)) <= held


def _product(count: int, price: int) -> int:
    return count * price


def plain_prices(problem: PackingProblem) -> Iterator[Counts]:
    """One for each kind, and the amounts of each resource."""
    kinds = range(len(problem.amounts))
    for kind in kinds:
        yield tuple(int(other == kind) for other in kinds)
    if len(problem.amounts) > 1:
        yield from dict.fromkeys(zip(*problem.amounts, strict=True))
