"""Choices: the cheapest clusters of one unit by itself, with some forced on it and some forbidden.

The solver asks for them at every position of the search; most positions differ in one unit, so they
are kept. The clusters that can serve all parts of a unit are the bases of a transversal matroid,
and the greedy way is exact on a matroid: clusters are taken from the cheapest on, whenever the
parts can be dealt out anew so that the new cluster serves one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dovetail.intents.candidates.solver.problem import AppUnit, PickProblem

Held = dict[int, int]
"""The clusters of a unit, each with the part that it serves."""

NOTHING: frozenset[int] = frozenset()


class Restrictions(msgspec.Struct, frozen=True):
    """By unit: clusters that it must have, and must not have."""

    forced: tuple[frozenset[int], ...]
    forbidden: tuple[frozenset[int], ...]

    @classmethod
    def none(cls, units: int) -> Restrictions:
        return cls((NOTHING,) * units, (NOTHING,) * units)


class UnitChoice(msgspec.Struct, frozen=True):
    """Clusters of a unit, and what they cost. Not to be changed."""

    held: Held
    cost: int
    meeting: tuple[int, ...]
    """Those of them where units may be in each other's way."""


class UnitChoices:
    """Of one problem."""

    def __init__(self, problem: PickProblem) -> None:
        self._problem = problem
        self._known: dict[tuple[int, frozenset[int], frozenset[int]], UnitChoice | None] = {}

    def cheapest(self, unit: int, restrictions: Restrictions) -> UnitChoice | None:
        """None: it cannot be served."""
        key = (unit, restrictions.forced[unit], restrictions.forbidden[unit])
        if key not in self._known:
            self._known[key] = self._choice(*key)
        return self._known[key]

    def _choice(
        self, unit: int, forced: frozenset[int], forbidden: frozenset[int]
    ) -> UnitChoice | None:
        problem = self._problem
        held = held_by(problem.units[unit], forced, forbidden)
        if held is None:
            return None
        cost = sum(problem.cost(unit, cluster) for cluster in held)
        return UnitChoice(held, cost, tuple(problem.meeting.intersection(held)))


def held_by(unit: AppUnit, forced: frozenset[int], forbidden: frozenset[int]) -> Held | None:
    """The forced clusters, and the cheapest others."""
    dealing = Dealing(unit)
    if not all(dealing.take(cluster) for cluster in sorted(forced)):
        return None
    for cluster in unit.order:
        if len(dealing.held) == unit.count:
            break
        if cluster not in forbidden and cluster not in dealing.held:
            dealing.take(cluster)
    return dealing.held if len(dealing.held) == unit.count else None


class Dealing:
    """Clusters dealt out to the parts of a unit: a matching that grows along augmenting paths."""

    def __init__(self, unit: AppUnit, held: Iterable[tuple[int, int]] = ()) -> None:
        self._parts = unit.parts
        self.held: Held = dict(held)
        self._open = [part.count for part in unit.parts]
        for part in self.held.values():
            self._open[part] -= 1

    def take(self, cluster: int) -> bool:
        """Whether it can serve a part, if others are dealt out anew."""
        if len(self._parts) == 1:
            is_taken = self._open[0] > 0 and self._parts[0].members[cluster] == 1
            if is_taken:
                self.held[cluster] = 0
                self._open[0] -= 1
            return is_taken
        return self._take(cluster, set())

    def _take(self, cluster: int, seen: set[int]) -> bool:
        for number, part in enumerate(self._parts):
            if number in seen or not part.members[cluster]:
                continue
            seen.add(number)
            if self._open[number]:
                self._open[number] -= 1
                self.held[cluster] = number
                return True
            for other in [each for each, of in self.held.items() if of == number]:
                if self._take(other, seen):
                    self.held[cluster] = number
                    return True
        return False
