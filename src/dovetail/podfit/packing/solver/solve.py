"""The packing solver's steps in turn: a quick no, a quick yes, and the search that decides.

`packing` asks it for whole sets of pods, and for what a region of nodes can hold. Equal problems
are the same question, wherever they come from: the answers to the last ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.podfit.packing.solver.greedy import first_fit
from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.prices import PriceBound, plain_prices
from dovetail.podfit.packing.solver.problem import Packing, PackingProblem, StepBudget
from dovetail.podfit.packing.solver.search import search


def solve(problem: PackingProblem, budget: StepBudget) -> Packing | None:
    """Where all pods go; None: they do not fit. Raises BudgetSpent."""
    if not any(problem.counts):
        return ((),) * len(problem.classes)
    patterns = [NodePatterns(problem, each) for each in problem.classes]
    if not _have_room_alone(problem, patterns):
        return None
    for order in _orders(problem, patterns):
        budget.spend()
        packing, left = first_fit(problem, patterns, order)
        if not any(left):
            return packing
    bounds = [PriceBound(each, patterns, budget) for each in plain_prices(problem)]
    if not all(each.allows(problem.counts) for each in bounds):
        return None
    return search(problem.counts, patterns, bounds, budget)


def _have_room_alone(problem: PackingProblem, patterns: Sequence[NodePatterns]) -> bool:
    return all(
        sum(each.caps[kind] * each.of.size for each in patterns) >= count
        for kind, count in enumerate(problem.counts)
        if count
    )


def _orders(problem: PackingProblem, patterns: Sequence[NodePatterns]) -> Iterator[Sequence[int]]:
    """In which kinds may be placed: as they are hard, and those with little room to spare first."""
    kinds = range(len(problem.counts))
    yield kinds
    room = [sum(each.caps[kind] * each.of.size for each in patterns) for kind in kinds]
    yield sorted(kinds, key=lambda kind: room[kind] / max(problem.counts[kind], 1))
    yield sorted(kinds, key=lambda kind: sum(kind in each.of.kinds for each in patterns))
