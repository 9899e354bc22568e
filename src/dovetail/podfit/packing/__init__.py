"""Packing: does a set of pods fit on a set of nodes, all of them at once? Exact, or undecided.

Stock of machines and hardware intents ask it. An assignment is feasible if there is an order in
which kube-scheduler's filters accept each pod where it is assigned, one after another; so says
`NodeTable.filter`, and so it is tested. The parts:

    answers        the question's kinds of pods; packed, unpackable or undecided
    question       kinds and nodes that are alike taken together
    node_classes   nodes that are the same to every kind
    relations      what pods of the set demand of each other
    solver/        vector bin packing: which patterns do nodes get?
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dovetail.podfit.packing.answers import MostThatFit, Packed, PodsToPack, Undecided, Unpackable
from dovetail.podfit.packing.deciding import assignment_of
from dovetail.podfit.packing.explaining import Explaining
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.table import NodeTable

__all__ = ["STEPS", "MostThatFit", "Packed", "PodsToPack", "Undecided", "Unpackable", "pack"]

STEPS = 100_000
"""What a question may take by default: about a second."""


def pack(
    table: NodeTable,
    kinds: Sequence[PodsToPack],
    *,
    among: Collection[str] | None = None,
    budget: int = STEPS,
) -> Packed | Unpackable | Undecided:
    """Whether these pods fit on these nodes beside what is there, all at once; the table is as it
    was afterwards. `among`: the nodes by name; None stands for all.

    To tell why pods do not fit may take as many steps again.
    """
    steps = StepBudget(budget)
    try:
        assignment = assignment_of(table.nodes, kinds, among, steps)
    except BudgetSpent:
        return Undecided(steps.spent)
    if assignment is not None:
        return Packed(assignment)
    return Explaining(table.nodes, kinds, among, StepBudget(budget)).unpackable()
