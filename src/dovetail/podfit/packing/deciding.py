"""One set of pods decided: where they go, or that they fit nowhere; `packing` asks it again and
again, for the whole set and for parts of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.question import Question
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.packing.solver.solve import solve


def assignment_of(
    nodes: Nodes, asked: Sequence[PodsToPack], among: Collection[str] | None, budget: StepBudget
) -> Assignment | None:
    """None: they do not fit. Raises BudgetSpent."""
    if not any(each.count for each in asked):
        return ({},) * len(asked)
    question = Question(nodes, asked, among)
    relations = question.relations
    if relations.ports or relations.apart or relations.near or relations.spread:
        raise BudgetSpent
    problem, classes = question.problem()
    packing = solve(problem, budget)
    return None if packing is None else question.assignment(packing, classes)
