"""Rounding of the linear relaxation: a packing, found from the fractions of one.

Of each pattern so many nodes get it as the relaxation says, rounded down, and if that is none, one
of the largest fraction. What is left over is relaxed and rounded again, unless first fit places it
or a short search decides it. Each round fills a node at least, so it ends.
It may end with pods left over though a packing exists: then the search has to decide.
"""

from __future__ import annotations

from contextlib import suppress
from operator import sub

import msgspec

from dovetail.podfit.packing.solver.columns import LinearProgram, LinearSolution
from dovetail.podfit.packing.solver.greedy import first_fit
from dovetail.podfit.packing.solver.patterns import patterns_of
from dovetail.podfit.packing.solver.prices import plain_bounds
from dovetail.podfit.packing.solver.problem import (
    BudgetSpent,
    Counts,
    Packing,
    PackingProblem,
    StepBudget,
)
from dovetail.podfit.packing.solver.search import SHORT_SEARCH, search

CLOSE = 1e-6
"""Fractions that are taken for whole numbers."""
SPARED = (0, 1, 2)
"""How many nodes of each pattern are left empty in the first round, so that there is a choice."""


def rounded(
    problem: PackingProblem, solution: LinearSolution, budget: StepBudget
) -> Packing | None:
    """A packing, if one is found. Raises BudgetSpent."""
    for spared in SPARED:
        found = _rounded(problem, solution, spared, budget)
        if found is not None:
            return found
    return None


def _rounded(
    problem: PackingProblem, solution: LinearSolution, spared: int, budget: StepBudget
) -> Packing | None:
    rest = _Rest(problem)
    while True:
        rest.fill(solution, spared)
        spared = 0
        smaller = rest.problem()
        patterns = patterns_of(smaller)
        packing, left = first_fit(smaller, patterns, range(len(smaller.counts)))
        if not any(left):
            return rest.packing(packing)
        with suppress(BudgetSpent), budget.part(SHORT_SEARCH) as short:
            bounds = plain_bounds(smaller, patterns)
            found = search(smaller.counts, patterns, bounds, short)
            return None if found is None else rest.packing(found)
        solution = LinearProgram(smaller.counts, patterns, budget).solution()
        if solution.left_over > CLOSE:
            return None


class _Rest:
    """What is not placed yet, and nodes that have nothing yet."""

    def __init__(self, problem: PackingProblem) -> None:
        self._problem = problem
        self._left = problem.counts
        self._sizes = [each.size for each in problem.classes]
        self._found: list[dict[Counts, int]] = [{} for _ in problem.classes]

    def fill(self, solution: LinearSolution, spared: int) -> None:
        """Nodes with patterns, as many as the solution says, rounded down and less those spared,
        or one."""
        filled = 0
        for node_class, pattern, nodes in solution.used:
            filled += self._use(node_class, pattern, max(int(nodes + CLOSE) - spared, 0))
        if not filled:
            node_class, pattern, _ = max(solution.used, key=lambda each: each[2])
            self._use(node_class, pattern, 1)

    def _use(self, node_class: int, pattern: Counts, nodes: int) -> int:
        """How many nodes had use for it."""
        for used in range(nodes):
            fitting = tuple(map(min, pattern, self._left))
            if not any(fitting) or not self._sizes[node_class]:
                return used
            self._left = tuple(map(sub, self._left, fitting))
            self._sizes[node_class] -= 1
            here = self._found[node_class]
            here[fitting] = here.get(fitting, 0) + 1
        return nodes

    def problem(self) -> PackingProblem:
        classes = tuple(
            msgspec.structs.replace(each, size=size)
            for each, size in zip(self._problem.classes, self._sizes, strict=True)
        )
        return PackingProblem(self._problem.amounts, self._left, classes)

    def packing(self, rest: Packing) -> Packing:
        """With a packing of what was left."""
        for here, patterns in zip(self._found, rest, strict=True):
            for pattern, nodes in patterns:
                here[pattern] = here.get(pattern, 0) + nodes
        return tuple(tuple(here.items()) for here in self._found)
