"""Packing: does a set of pods fit on a set of nodes, all of them at once? Exact, or undecided.

Stock of machines and hardware intents ask it. An assignment is feasible if there is an order in
which kube-scheduler's filters accept each pod where it is assigned, one after another; so says
`NodeTable.filter`, and so it is tested. The parts, as a question passes them:

    answers         kinds of pods to pack; packed, unpackable or undecided
    deciding        one set: a question, and who answers it
    question        kinds that are alike taken together
    relations       what pods of the set demand of each other
    node_classes    nodes that are the same to every kind
    conflicts       pods that cannot share a node
    solver/         vector bin packing: which patterns do nodes get?
    regions         nodes in the same domains, for demands that go beyond a node
    region_search   pods put into regions one after another, over layouts, in stages
    completion      the nodes for a layout, by the solver
    counting        how many fit
    explaining      why not more, and the blocking node
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dovetail.podfit.packing.answers import MostThatFit, Packed, PodsToPack, Undecided, Unpackable
from dovetail.podfit.packing.counting import Attempts
from dovetail.podfit.packing.deciding import assignment_of
from dovetail.podfit.packing.explaining import unpackable
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.table import NodeTable

__all__ = [
    "STEPS",
    "MostThatFit",
    "Packed",
    "PodsToPack",
    "Undecided",
    "Unpackable",
    "most",
    "pack",
]

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
    return unpackable(kinds, Attempts(table.nodes, among, StepBudget(budget)))


def most(
    table: NodeTable,
    request: PodRequest,
    *,
    beside: Sequence[PodsToPack] = (),
    among: Collection[str] | None = None,
    budget: int = STEPS,
) -> MostThatFit:
    """How many pods of a kind fit on these nodes, beside what is there and all pods of `beside`;
    none, if those do not fit."""
    attempts = Attempts(table.nodes, among, StepBudget(budget))
    room = attempts.room(beside, request)
    asked = [*beside, PodsToPack(request, room)]
    try:
        nothing = attempts.assignment([*beside, PodsToPack(request, 0)])
    except BudgetSpent:
        return MostThatFit(0, room)
    if nothing is None and not attempts.is_watched(asked, len(beside)):
        return MostThatFit(0, 0)
    found = attempts.pods(asked, len(beside), room, nothing or ())
    return MostThatFit(found.at_least, found.at_most)
