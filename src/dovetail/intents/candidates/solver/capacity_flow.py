"""Capacity flow: the cheapest assignment if clusters only limit how many units they take at once.

The search takes it as the bound of a position. What it leaves out are the families of contended
clusters beyond their numbers, what units lose by sharing a cluster, and that some require others;
so no assignment of the position is cheaper. It is a flow of least cost: units begin on their
cheapest clusters, as if nobody else were there; while a cluster has more than it takes, one unit of
it gives way along the shortest path of moves (to another cluster, from which another unit gives
way, and so on) to a cluster with room. Successive shortest paths keep a flow of least cost at every
step, and each step removes one unit that is too many, so there are as many steps as units that are
in each other's way: on most fleets none.
"""

from __future__ import annotations

from collections import deque

import msgspec

from dovetail.intents.candidates.app_sets import apps_of
from dovetail.intents.candidates.solver.budget import PickBudget
from dovetail.intents.candidates.solver.choices import Held, Restrictions, UnitChoices
from dovetail.intents.candidates.solver.problem import CapacityGroup, PickProblem, UnitMask

Place = tuple[int, UnitMask]
"""A cluster, and which units of it are in each other's way: a capacity group."""
Slot = tuple[int, int]
"""A unit, and which of its parts."""


class _SlotLabel(msgspec.Struct):
    """How cheaply a slot can get to need a cluster."""

    cost: int
    place: Place | None
    """Where its unit gave way; None: another part of the unit took its cluster."""
    slot: Slot | None
    """That other part."""
    cluster: int
    """That it gave up."""


class CapacityFlow:
    """One flow: who holds which clusters."""

    def __init__(
        self,
        problem: PickProblem,
        choices: UnitChoices,
        restrictions: Restrictions,
        budget: PickBudget,
    ) -> None:
        self.problem, self._restrictions, self._budget = problem, restrictions, budget
        self._choices = choices
        self.held: list[Held] = []
        self.cost = 0
        self.there: dict[int, UnitMask] = {}
        """By cluster where units may be in each other's way: those that are there."""

    def solve(self) -> bool:
        """Whether there is an assignment; then `held` is the cheapest. Raises PickBudgetSpent."""
        there = self.there
        for unit in range(len(self.problem.units)):
            choice = self._choices.cheapest(unit, self._restrictions)
            if choice is None:
                return False
            self.held.append(choice.held)
            self.cost += choice.cost
            for cluster in choice.meeting:
                there[cluster] = there.get(cluster, 0) | 1 << unit
        overfull = self._overfull()
        if overfull:
            self.held = [dict(held) for held in self.held]
        for place in overfull:
            while (there[place[0]] & place[1]).bit_count() > self._most(place):
                if not self._give_way(place):
                    return False
        return True

    def _overfull(self) -> list[Place]:
        return [
            (cluster, group.units)
            for cluster, units in sorted(self.there.items())
            if units & (units - 1)
            for group in self.problem.groups(cluster)
            if (units & group.units).bit_count() > group.most
        ]

    def _most(self, place: Place) -> int:
        groups = self.problem.groups(place[0])
        return next(group.most for group in groups if group.units == place[1])

    def _has_room(self, group: CapacityGroup, cluster: int) -> bool:
        return (self.there.get(cluster, 0) & group.units).bit_count() < group.most

    def _give_way(self, start: Place) -> bool:
        """Whether a unit can leave the place, by the cheapest path of moves."""
        path = _Path(start)
        while path.queue:
            self._budget.spend()
            node = path.queue.popleft()
            path.waiting.discard(node)
            if node[0] == _PLACE:
                self._leave(path, node[1:])
            else:
                self._find_cluster(path, node[1:])
        if path.end is None:
            return False
        self._move(path)
        return True

    def _leave(self, path: _Path, place: Place) -> None:
        """Any unit there may be the one that goes."""
        cluster = place[0]
        cost = path.places[place][0]
        for unit in apps_of(self.there[cluster] & place[1]):
            if cluster not in self._restrictions.forced[unit]:
                slot = (unit, self.held[unit][cluster])
                less = cost - self.problem.cost(unit, cluster)
                path.reach_slot(slot, _SlotLabel(less, place, None, cluster))

    def _find_cluster(self, path: _Path, slot: Slot) -> None:
        """One with room, one that is full, or one that serves another part of the unit."""
        unit, part = slot
        cost = path.slots[slot].cost
        held, members = self.held[unit], self.problem.units[unit].parts[part].members
        forbidden = self._restrictions.forbidden[unit]
        for cluster in self.problem.units[unit].order:
            if members[cluster] and cluster not in held and cluster not in forbidden:
                group = self.problem.group(unit, cluster)
                more = cost + self.problem.cost(unit, cluster)
                if group is None or self._has_room(group, cluster):
                    path.reach_end(slot, cluster, more)
                    break
                path.reach_place((cluster, group.units), more, slot)
        if len(self.problem.units[unit].parts) > 1:
            for cluster, other in held.items():
                if other != part and members[cluster]:
                    path.reach_slot((unit, other), _SlotLabel(cost, None, slot, cluster))

    def _move(self, path: _Path) -> None:
        """All units along the path, from its end."""
        assert path.end is not None
        cost, slot, cluster = path.end
        self.cost += cost
        while True:
            unit, part = slot
            label = path.slots[slot]
            self.held[unit][cluster] = part
            if cluster in self.problem.meeting:
                self.there[cluster] = self.there.get(cluster, 0) | 1 << unit
            if label.slot is not None:
                slot, cluster = label.slot, label.cluster
                continue
            assert label.place is not None
            del self.held[unit][label.cluster]
            self.there[label.cluster] &= ~(1 << unit)
            _, before = path.places[label.place]
            if before is None:
                return
            slot, cluster = before, label.place[0]


_PLACE, _SLOT = 0, 1


class _Path:
    """Labels of shortest paths from one place; corrected until none gets better (Bellman-Ford with
    a queue). Moves back cost less than nothing, but there is no cycle that does."""

    def __init__(self, start: Place) -> None:
        self.places: dict[Place, tuple[int, Slot | None]] = {start: (0, None)}
        self.slots: dict[Slot, _SlotLabel] = {}
        self.end: tuple[int, Slot, int] | None = None
        self.queue: deque[tuple[int, int, int]] = deque([(_PLACE, *start)])
        self.waiting = set(self.queue)

    def reach_slot(self, slot: Slot, label: _SlotLabel) -> None:
        known = self.slots.get(slot)
        if known is None or label.cost < known.cost:
            self.slots[slot] = label
            self._queue((_SLOT, *slot))

    def reach_place(self, place: Place, cost: int, slot: Slot) -> None:
        known = self.places.get(place)
        if known is None or cost < known[0]:
            self.places[place] = (cost, slot)
            self._queue((_PLACE, *place))

    def reach_end(self, slot: Slot, cluster: int, cost: int) -> None:
        if self.end is None or cost < self.end[0]:
            self.end = (cost, slot, cluster)

    def _queue(self, node: tuple[int, int, int]) -> None:
        if node not in self.waiting:
            self.waiting.add(node)
            self.queue.append(node)
