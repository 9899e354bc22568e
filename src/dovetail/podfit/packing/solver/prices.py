"""Bounds by prices: pods that are worth more than all nodes can hold do not fit.

Any prices of the kinds make a bound. A node holds no pattern worth more than the best there is for
its class, so nodes together hold no more than the sum of these; what is wanted must not be worth
more. Prices of one for a kind bound how many of it fit alone, a resource's amounts as prices bound
that resource, and the best prices of all are the dual solution of the linear relaxation
(`columns`). All are whole numbers: a bound is a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.problem import Counts, PackingProblem, StepBudget

KNAPSACK_STEPS = 500
"""For the best pattern of one class; its bound is used where they are not enough."""


class PriceBound:
    def __init__(
        self, prices: Counts, worth: Sequence[int], patterns: Sequence[NodePatterns]
    ) -> None:
        """`worth`: by class, of the best pattern or more."""
        self._prices, self._worth = prices, worth
        self._after = [0] * (len(patterns) + 1)
        """What all nodes of the classes from there on can hold."""
        for at in range(len(patterns) - 1, -1, -1):
            self._after[at] = self._after[at + 1] + worth[at] * patterns[at].of.size

    def allows(self, left: Counts, node_class: int = 0, nodes: int | None = None) -> bool:
        """Whether nodes from that class on, of it only so many, may hold what is left."""
        held = self._after[node_class]
        if nodes is not None:
            held = self._after[node_class + 1] + nodes * self._worth[node_class]
        wanted: int = sum(map(mul, left, self._prices))
        return wanted <= held


def plain_bounds(problem: PackingProblem, patterns: Sequence[NodePatterns]) -> list[PriceBound]:
    """By kind, and by resource. A pattern has no more of a kind than fit alone, and uses no more of
    a resource than is free."""
    kinds = range(len(problem.counts))
    found = [
        PriceBound(
            tuple(int(other == kind) for other in kinds),
            [each.caps[kind] for each in patterns],
            patterns,
        )
        for kind, count in enumerate(problem.counts)
        if count
    ]
    for at, prices in enumerate(zip(*problem.amounts, strict=True)):
        found.append(PriceBound(prices, [each.of.free[at] for each in patterns], patterns))
    return found


def best_bound(prices: Counts, patterns: Sequence[NodePatterns], budget: StepBudget) -> PriceBound:
    """By the best patterns, at any prices."""
    worth = []
    for each in patterns:
        with budget.part(KNAPSACK_STEPS) as part:
            worth.append(each.best(prices, part)[0])
    return PriceBound(prices, worth, patterns)
