"""The pick's search: branch and bound, the position with the lowest bound first.

`picking` calls it with the problems of all alternatives at once.

Position. Units that are forced on clusters, and clusters that are forbidden to units. Its bound is
the cheapest assignment of the relaxation, plus what forced units cost for sharing their clusters.
No assignment of the position is cheaper: sharing never costs less than being alone.

Branching. If the relaxation's assignment breaks nothing, and costs what it was charged, it is the
best of its position. Else there is a cluster whose units cannot all be there or cost more together,
or a unit on a cluster without one that it requires. One of these units is forced on the cluster in
one position, and forbidden there in the other. Forcing a unit brings those that it requires, and
forbids the cluster to all that cannot be there beside it; forbidding one forbids those that require
it.

End. Each branch decides one more pair of unit and cluster, so it ends; in exponential time at
worst, as the independent set problem is a case of it. So steps are bounded. When they are spent,
the best assignment that is known is the answer: the greedy one, or one found on the way, or the
first that a dive from the best open position finds. It is proven if no open position has a lower
bound in anything but the order of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

import msgspec

from dovetail.intents.candidates.app_sets import apps_of
from dovetail.intents.candidates.solver.budget import PickBudget, PickBudgetSpent
from dovetail.intents.candidates.solver.capacity_flow import CapacityFlow
from dovetail.intents.candidates.solver.choices import Held, Restrictions, UnitChoices
from dovetail.intents.candidates.solver.greedy import (
    PricedAssignment,
    greedy_assignment,
    rounded_assignment,
)
from dovetail.intents.candidates.solver.problem import PickProblem, UnitMask

POSITION_STEPS = 3
CLUSTERS_A_STEP = 8
"""What a position costs, beside its flow: so many steps, and one for so many clusters that it has
units on."""
JOINT_STEPS = 10
"""That it costs to have asked for a joint score since the position before."""
ROUNDED = 32
"""Of so many positions, one has its flow rounded to an assignment."""
NAME_STEPS = 10_000
"""For a better order of names once nothing else can be better."""
DIVE_STEPS = 20_000
"""To find any assignment at all, when the others are spent."""


class PickSolution(msgspec.Struct, frozen=True, kw_only=True):
    problem: PickProblem
    held: tuple[Held, ...]
    """By unit."""
    cost: int


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    solution: PickSolution | None
    is_decided: bool
    """That these problems have no better one, or none at all."""
    is_proven: bool = False
    """And that these problems are all there are; who made them knows."""
    steps: int


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the search tree."""

    tree: _Tree
    restrictions: Restrictions
    together: Mapping[int, UnitMask]
    """By cluster, units that are forced on it."""
    held: tuple[Held, ...]
    bound: int
    conflict: tuple[int, int] | None
    """A unit and a cluster to branch on; None: the relaxation's assignment breaks nothing."""
    depth: int


class _Tree:
    """All positions of one problem."""

    def __init__(self, problem: PickProblem, budget: PickBudget) -> None:
        self.problem, self._budget = problem, budget
        self._choices = UnitChoices(problem)
        held = sum(unit.count for unit in problem.units)
        self._asked = problem.joint.asked
        self._steps = POSITION_STEPS + held // CLUSTERS_A_STEP

    def root(self) -> Position | None:
        return self._position(Restrictions.none(len(self.problem.units)), {}, 0)

    def children(self, position: Position) -> list[Position]:
        """With the unit of the conflict forced on its cluster, and forbidden there."""
        assert position.conflict is not None
        found = []
        for branch in (self._forced, self._forbidden):
            changed = branch(position, *position.conflict)
            if changed is not None:
                child = self._position(*changed, position.depth + 1)
                if child is not None:
                    found.append(child)
        return found

    def _position(
        self, restrictions: Restrictions, together: Mapping[int, UnitMask], depth: int
    ) -> Position | None:
        problem = self.problem
        self._budget.spend(self._steps + JOINT_STEPS * (problem.joint.asked - self._asked))
        self._asked = problem.joint.asked
        flow = CapacityFlow(problem, self._choices, restrictions, self._budget)
        if not flow.solve():
            return None
        bound = problem.base + flow.cost
        for cluster, units in together.items():
            bound += problem.sharing_cost(cluster, units) or 0
        return Position(
            tree=self,
            restrictions=restrictions,
            together=together,
            held=tuple(flow.held),
            bound=bound,
            conflict=self._conflict(flow, together),
            depth=depth,
        )

    def _conflict(
        self, flow: CapacityFlow, together: Mapping[int, UnitMask]
    ) -> tuple[int, int] | None:
        """The worst cluster: where units cannot be together, else where they lose most."""
        problem = self.problem
        held, there = flow.held, flow.there
        worst: tuple[bool, int, int] | None = None
        for cluster, units in there.items():
            if units & (units - 1) == 0 and cluster not in problem.joint.clusters:
                continue
            extra = problem.sharing_cost(cluster, units)
            charged = problem.sharing_cost(cluster, together.get(cluster, 0)) or 0
            if extra is None or extra > charged:
                found = (extra is None, 0 if extra is None else extra - charged, -cluster)
                worst = found if worst is None else max(worst, found)
        if worst is not None:
            cluster = -worst[2]
            return next(apps_of(there[cluster] & ~together.get(cluster, 0))), cluster
        for unit, of in enumerate(problem.units):
            for other in of.requires:
                alone = held[unit].keys() - held[other].keys()
                if alone:
                    return unit, min(alone)
        return None

    def _forced(
        self, position: Position, unit: int, cluster: int
    ) -> tuple[Restrictions, Mapping[int, UnitMask]] | None:
        problem, restrictions = self.problem, position.restrictions
        brought = (unit, *problem.units[unit].requires)
        here = position.together.get(cluster, 0) | _mask(brought)
        if problem.sharing_cost(cluster, here) is None:
            return None
        forced, forbidden = list(restrictions.forced), list(restrictions.forbidden)
        for each in brought:
            if cluster in forbidden[each]:
                return None
            forced[each] |= {cluster}
        for other, of in enumerate(problem.units):
            beside = here | 1 << other | _mask(of.requires)
            if not here >> other & 1 and problem.sharing_cost(cluster, beside) is None:
                forbidden[other] |= {cluster}
        changed = Restrictions(tuple(forced), tuple(forbidden))
        return changed, {**position.together, cluster: here}

    def _forbidden(
        self, position: Position, unit: int, cluster: int
    ) -> tuple[Restrictions, Mapping[int, UnitMask]] | None:
        restrictions = position.restrictions
        forbidden = list(restrictions.forbidden)
        for each in (unit, *self.problem.units[unit].required_by):
            if cluster in restrictions.forced[each]:
                return None
            forbidden[each] |= {cluster}
        return Restrictions(restrictions.forced, tuple(forbidden)), position.together


class _Hunt:
    """The open positions of all problems, and the best assignment so far."""

    def __init__(self, budget: PickBudget) -> None:
        self.budget = budget
        self.best: PickSolution | None = None
        self._open: list[tuple[int, int, int, Position]] = []
        self._made = 0
        self._begun: _Tree | None = None
        """Whose root is being looked at."""
        self._has_begun_all = False

    def begin(self, problem: PickProblem) -> None:
        self._begun = tree = _Tree(problem, self.budget)
        root = tree.root()
        if root is not None and root.conflict is not None:
            self._note_assignment(greedy_assignment(problem, self.budget))
            self._note_assignment(rounded_assignment(problem, root.held, self.budget))
        if root is not None:
            self._add(root)
        self._begun = None

    def run(self) -> None:
        """Until nothing is open that could be better. Raises PickBudgetSpent."""
        self._has_begun_all = True
        is_limited = False
        while self._open and not self._is_best():
            if not is_limited and self.is_decided():
                is_limited = True
                self.budget.left = min(self.budget.left, NAME_STEPS)
            for child in self._pop():
                self._add(child)
        self._open.clear()

    def dive(self) -> None:
        """Down from the best open position, forcing what can be forced."""
        self.budget.left = DIVE_STEPS
        try:
            if self._begun is not None:
                self.begin(self._begun.problem)
            while self._open and self.best is None:
                stack = self._pop()[::-1]
                while stack and self.best is None:
                    position = stack.pop()
                    self._note(position)
                    if position.conflict is not None:
                        stack += position.tree.children(position)[::-1]
        except PickBudgetSpent:
            return

    def is_decided(self) -> bool:
        """Whether no open position can be better, but for names."""
        if not self._has_begun_all:
            return False
        if self.best is None:
            return not self._open
        primary = self.best.problem.objective.primary
        return not self._open or primary(self._open[0][0]) >= primary(self.best.cost)

    def _is_best(self) -> bool:
        return self.best is not None and self._open[0][0] >= self.best.cost

    def _pop(self) -> list[Position]:
        """The children of the best open position, which stays open if the budget ends."""
        position = self._open[0][-1]
        children = position.tree.children(position)
        heappop(self._open)
        return children

    def _add(self, position: Position) -> None:
        self._note(position)
        if position.conflict is not None and (self.best is None or position.bound < self.best.cost):
            self._made += 1
            if self._made % ROUNDED == 0:
                problem = position.tree.problem
                self._note_assignment(rounded_assignment(problem, position.held, self.budget))
            heappush(self._open, (position.bound, -position.depth, self._made, position))

    def _note_assignment(self, found: PricedAssignment | None) -> None:
        if found is not None:
            cost, assignment = found
            held = tuple(each or {} for each in assignment.held)
            self._improve(PickSolution(problem=assignment.problem, held=held, cost=cost))

    def _note(self, position: Position) -> None:
        if position.conflict is None:
            problem = position.tree.problem
            self._improve(PickSolution(problem=problem, held=position.held, cost=position.bound))

    def _improve(self, solution: PickSolution) -> None:
        if self.best is None or solution.cost < self.best.cost:
            self.best = solution


def search(problems: Iterable[PickProblem], budget: PickBudget) -> SearchResult:
    """The best assignment of all problems."""
    hunt = _Hunt(budget)
    try:
        for problem in problems:
            hunt.begin(problem)
        hunt.run()
    except PickBudgetSpent:
        if hunt.best is None:
            hunt.dive()
    return SearchResult(solution=hunt.best, is_decided=hunt.is_decided(), steps=hunt.budget.spent)


def _mask(units: Iterable[int]) -> UnitMask:
    return sum(1 << unit for unit in set(units))
