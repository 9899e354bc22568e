"""The packing solver's steps in turn: first fit, bounds, the linear relaxation, and the search.

`packing` asks it for whole sets of pods, and for what a region of nodes can hold. First fit mostly
finds a packing where there is one with nodes to spare, bounds and the relaxation mostly a proof
where there is none, rounding of the relaxation a packing where there is nothing to spare; and what
is left is searched. Equal problems are the same question, wherever they come from: the answers to
the last of them are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from dovetail.podfit.packing.solver.columns import MOST_ROWS, LinearProgram
from dovetail.podfit.packing.solver.greedy import first_fit
from dovetail.podfit.packing.solver.patterns import NodePatterns, patterns_of
from dovetail.podfit.packing.solver.prices import best_bound, plain_bounds
from dovetail.podfit.packing.solver.problem import (
    BudgetSpent,
    Counts,
    Packing,
    PackingProblem,
    StepBudget,
)
from dovetail.podfit.packing.solver.rounding import CLOSE, rounded
from dovetail.podfit.packing.solver.search import SHORT_SEARCH, search

KEPT = 64
"""Answers."""


def solve(problem: PackingProblem, budget: StepBudget) -> Packing | None:
    """Where all pods go; None: they do not fit. Raises BudgetSpent."""
    if not any(problem.counts):
        return ((),) * len(problem.classes)
    patterns = patterns_of(problem)
    if not all(each.allows(problem.counts) for each in plain_bounds(problem, patterns)):
        return None
    for order in _orders(problem, patterns):
        budget.spend()
        packing, left = first_fit(problem, patterns, order)
        if not any(left):
            return packing
    found: list[tuple[tuple[Counts, int], ...]] = [()] * len(problem.classes)
    for classes, part in _parts(problem):
        try:
            decided, spent = _decided(part, budget.left)
        except BudgetSpent:
            budget.left = 0
            raise
        budget.spend(spent)
        if decided is None:
            return None
        for at, here in zip(classes, decided, strict=True):
            found[at] = here
    return tuple(found)


@lru_cache(maxsize=KEPT)
def _decided(problem: PackingProblem, steps: int) -> tuple[Packing | None, int]:
    """The answer, and the steps that it took. Raises BudgetSpent."""
    budget = StepBudget(steps)
    return _decide(problem, budget), budget.spent


def _decide(problem: PackingProblem, budget: StepBudget) -> Packing | None:
    counts, patterns = problem.counts, patterns_of(problem)
    bounds = plain_bounds(problem, patterns)
    with suppress(BudgetSpent), budget.part(SHORT_SEARCH) as short:
        return search(counts, patterns, bounds, short)
    if len(counts) + len(patterns) <= MOST_ROWS:
        solution = LinearProgram(counts, patterns, budget).solution()
        if solution.left_over <= CLOSE:
            found = rounded(problem, solution, budget)
            if found is not None:
                return found
        else:
            bounds.append(best_bound(solution.prices, patterns, budget))
            if not bounds[-1].allows(counts):
                return None
    return search(counts, patterns, bounds, budget)


def _parts(problem: PackingProblem) -> Iterator[tuple[list[int], PackingProblem]]:
    """The problem in parts that have no kind and no node in common: the classes of each, and the
    part as a problem of its own."""
    together: list[tuple[set[int], list[int]]] = []
    for at, each in enumerate(problem.classes):
        kinds = {kind for kind in each.kinds if problem.counts[kind]}
        classes = [at]
        apart = []
        for part in together:
            if part[0].isdisjoint(kinds):
                apart.append(part)
            else:
                kinds |= part[0]
                classes += part[1]
        together = [*apart, (kinds, classes)] if kinds else apart
    for kinds, classes in together:
        classes.sort()
        counts = tuple(n if kind in kinds else 0 for kind, n in enumerate(problem.counts))
        of = tuple(problem.classes[at] for at in classes)
        yield classes, PackingProblem(problem.amounts, counts, of)


def _orders(problem: PackingProblem, patterns: Sequence[NodePatterns]) -> Iterator[Sequence[int]]:
    """In which kinds may be placed: as they are hard, and those with little room to spare first."""
    kinds = range(len(problem.counts))
    yield kinds
    room = [sum(each.caps[kind] * each.of.size for each in patterns) for kind in kinds]
    yield sorted(kinds, key=lambda kind: room[kind] / max(problem.counts[kind], 1))
    yield sorted(kinds, key=lambda kind: sum(kind in each.of.kinds for each in patterns))
