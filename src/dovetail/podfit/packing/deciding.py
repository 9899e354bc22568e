"""One set of pods decided: where they go, or that they fit nowhere; `packing` asks it again and
again, for the whole set and for parts of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.completion import placements_of
from dovetail.podfit.packing.conflicts import apart_marks, by_reach
from dovetail.podfit.packing.question import Question
from dovetail.podfit.packing.region_search import RegionSearch
from dovetail.podfit.packing.regions import region_map
from dovetail.podfit.packing.solver.problem import PackingProblem, StepBudget
from dovetail.podfit.packing.solver.solve import solve


def assignment_of(
    nodes: Nodes, asked: Sequence[PodsToPack], among: Collection[str] | None, budget: StepBudget
) -> Assignment | None:
    """None: they do not fit. Raises BudgetSpent."""
    if not any(each.count for each in asked):
        return ({},) * len(asked)
    question = Question(nodes, asked, among)
    on_node, beyond = by_reach(question)
    apart = apart_marks(question, on_node)
    # Without relations beyond a node: if that is too much, so is more.
    classes = question.node_classes(apart, np.zeros(len(question.rows), np.int32))
    problem = PackingProblem(
        amounts=tuple(each.kind.amounts for each in question.kinds),
        counts=tuple(each.kind.count for each in question.kinds),
        classes=tuple(each.node_class for each in classes),
    )
    packing = solve(problem, budget)
    if packing is None:
        return None
    if beyond or question.relations.near or question.relations.spread:
        regions = region_map(question, beyond, apart)
        placements = RegionSearch(question, regions, budget).run()
        return None if placements is None else question.assignment(placements)
    return question.assignment(placements_of(packing, [each.rows for each in classes]))
