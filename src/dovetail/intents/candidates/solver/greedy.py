"""Greedy assignments: units one after another, each where it costs least beside those before it.

`search` begins with them where units are in each other's way, so that there is something to fall
back on and to compare bounds with; on its way it has flows rounded to assignments: units stay where
the flow has them, if nobody before them is in the way, and the others are placed greedily. Either
is improved by letting each unit choose anew while that makes the sum smaller. Every round lessens
the sum, and their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge

from dovetail.intents.candidates.solver.budget import PickBudget
from dovetail.intents.candidates.solver.choices import Dealing, Held
from dovetail.intents.candidates.solver.problem import PickProblem, UnitMask

MOST_ROUNDS = 8


class UnitAssignment:
    """Units on clusters, all of which take who is there."""

    def __init__(self, problem: PickProblem) -> None:
        self.problem = problem
        self.held: list[Held | None] = [None] * len(problem.units)
        self._there: dict[int, UnitMask] = {}

    def cost(self) -> int | None:
        """None: somebody does not fit beside those that are there, or without one that left."""
        found = self.problem.base
        for unit, held in enumerate(self.held):
            found += sum(self.problem.cost(unit, cluster) for cluster in held or ())
        for cluster, units in self._there.items():
            more = self.problem.sharing_cost(cluster, units) if units else 0
            if more is None:
                return None
            found += more
        return found

    def place(self, unit: int) -> bool:
        """Where it costs least, as the others are."""
        forced, within = self._bounds(unit)
        dealing = Dealing(self.problem.units[unit])
        wanted = self.problem.units[unit].count
        if any(self._more(unit, cluster) is None for cluster in forced):
            return False
        if not all(dealing.take(cluster) for cluster in sorted(forced)):
            return False
        for _, cluster in self._options(unit):
            if len(dealing.held) == wanted:
                break
            if cluster not in dealing.held and (within is None or cluster in within):
                dealing.take(cluster)
        if len(dealing.held) < wanted:
            return False
        self.put(unit, dealing.held)
        return True

    def put_if_fits(self, unit: int, held: Held) -> bool:
        """Whether it can be there beside those that are, and all that is required is kept."""
        forced, within = self._bounds(unit)
        fits = (
            forced <= held.keys()
            and (within is None or held.keys() <= within)
            and all(
                self._more(unit, cluster) is not None
                for cluster in self.problem.meeting.intersection(held)
            )
        )
        if fits:
            self.put(unit, held)
        return fits

    def put(self, unit: int, held: Held) -> None:
        self.held[unit] = held
        for cluster in self.problem.meeting.intersection(held):
            self._there[cluster] = self._there.get(cluster, 0) | 1 << unit

    def take_back(self, unit: int) -> Held:
        held = self.held[unit] or {}
        self.held[unit] = None
        for cluster in self.problem.meeting.intersection(held):
            self._there[cluster] &= ~(1 << unit)
        return held

    def _bounds(self, unit: int) -> tuple[set[int], set[int] | None]:
        """Where it has to be, and where alone it can be, for what units require of each other."""
        of = self.problem.units[unit]
        forced = {cluster for other in of.required_by for cluster in self.held[other] or ()}
        placed = [set(held) for other in of.requires if (held := self.held[other]) is not None]
        return forced, set.intersection(*placed) if placed else None

    def _options(self, unit: int) -> Iterator[tuple[int, int]]:
        """Clusters that take it beside who is there, the cheapest first."""
        cost = self.problem.cost
        shared = []
        for cluster, units in self._there.items():
            more = self._more(unit, cluster) if units else None
            if more is not None:
                shared.append((cost(unit, cluster) + more, cluster))
        there = self._there
        alone = (
            (cost(unit, cluster), cluster)
            for cluster in self.problem.units[unit].order
            if not there.get(cluster) and self._more(unit, cluster) is not None
        )
        return merge(sorted(shared), alone)

    def _more(self, unit: int, cluster: int) -> int | None:
        """What all others there and the unit cost more for being together."""
        units = self._there.get(cluster, 0)
        after = self.problem.sharing_cost(cluster, units | 1 << unit)
        return None if after is None else after - (self.problem.sharing_cost(cluster, units) or 0)


PricedAssignment = tuple[int, UnitAssignment]
"""What it costs, and the assignment."""


def greedy_assignment(problem: PickProblem, budget: PickBudget) -> PricedAssignment | None:
    """The best of a few orders; None: in none of them all units find clusters."""
    units = range(len(problem.units))
    orders: list[Sequence[int]] = [
        units,
        sorted(units, key=lambda unit: len(problem.units[unit].order)),
    ]
    found = [each for order in orders if (each := _in_order(problem, order, budget)) is not None]
    return min(found, key=lambda each: each[0], default=None)


def rounded_assignment(
    problem: PickProblem, flow: Sequence[Held], budget: PickBudget
) -> PricedAssignment | None:
    """None: some unit finds no clusters."""
    assignment = UnitAssignment(problem)
    left = [unit for unit, held in enumerate(flow) if not assignment.put_if_fits(unit, held)]
    budget.spend(len(flow))
    if not all(assignment.place(unit) for unit in left):
        return None
    return _improved(assignment, range(len(flow)), budget)


def _in_order(
    problem: PickProblem, order: Sequence[int], budget: PickBudget
) -> PricedAssignment | None:
    assignment = UnitAssignment(problem)
    for unit in order:
        budget.spend()
        if not assignment.place(unit):
            return None
    return _improved(assignment, order, budget)


def _improved(
    assignment: UnitAssignment, order: Sequence[int], budget: PickBudget
) -> PricedAssignment | None:
    cost = assignment.cost()
    if cost is None:
        return None
    for _ in range(MOST_ROUNDS):
        before = cost
        for unit in order:
            budget.spend()
            held = assignment.take_back(unit)
            changed = assignment.cost() if assignment.place(unit) else None
            if changed is not None and changed < cost:
                cost = changed
            else:
                assignment.take_back(unit)
                assignment.put(unit, held)
        if cost == before:
            break
    return cost, assignment
