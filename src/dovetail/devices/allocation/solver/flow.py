"""Bipartite maximum flow by augmenting paths (Edmonds and Karp): units of places to demands.

The device solver asks it whether plain demands can be met together. A demand takes the first places
that are left; one that comes up short makes others move over, along a shortest augmenting path. So
demands are refused only if nothing can meet them. Looking for a path takes time linear in demands
and their options, and the number of paths is polynomial in demands and places, however many units
are wanted: it always ends, and soon.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

UnitsByPlace = dict[int, int]
"""What one demand takes."""


class Flow:
    """Units of demands on places; never more than are free."""

    def __init__(self, free: Sequence[int], *, cheapest: bool) -> None:
        """Places are numbered as they are preferred.

        With `cheapest` the places used in the end are the most preferred that can be: a demand may
        make others move over for it. Else nobody moves who need not.
        That is greedy and still the best set: sets of units that can all be taken are a matroid,
        and a unit once taken is never given back, only exchanged between demands.
        """
        self.takes: list[UnitsByPlace] = []
        self._left = list(free)
        self._cheapest = cheapest
        self._options: list[Sequence[int]] = []
        self._users: list[set[int]] = [set() for _ in free]

    def add(self, options: Sequence[int], count: int) -> bool:
        """One more demand; options in ascending order. False if it cannot be met as well."""
        demand = len(self.takes)
        self.takes.append({})
        self._options.append(options)
        if not self._cheapest:
            for place in options:
                units = min(self._left[place], count)
                if units:
                    self._move(demand, place, units)
                    self._left[place] -= units
                    count -= units
        while count:
            path = self._path(demand)
            if path is None:
                return False
            count -= self._augment(path, count)
        return True

    def _path(self, demand: int) -> list[tuple[int, int]] | None:
        """Who takes which place in turn, from the place that has units left back to the demand."""
        taker: dict[int, int] = {}
        leaves: dict[int, int] = {}
        queue = [demand]
        end: int | None = None
        for asker in queue:
            for place in self._options[asker]:
                if place in taker:
                    continue
                taker[place] = asker
                if self._left[place] and (end is None or place < end):
                    # The first place found is nearest; the cheapest may be farther off.
                    end = place
                    if not self._cheapest:
                        break
                for user in self._users[place]:
                    if user != demand and user not in leaves:
                        leaves[user] = place
                        queue.append(user)
            if end is not None and not self._cheapest:
                break
        if end is None:
            return None
        path = [(taker[end], end)]
        while path[-1][0] != demand:
            place = leaves[path[-1][0]]
            path.append((taker[place], place))
        return path

    def _augment(self, path: list[tuple[int, int]], wanted: int) -> int:
        end = path[0][1]
        units = min(wanted, self._left[end])
        for (mover, _), (_, place) in pairwise(path):
            units = min(units, self.takes[mover][place])
        self._left[end] -= units
        for (mover, to), (_, place) in pairwise(path):
            self._move(mover, to, units)
            self._move(mover, place, -units)
        self._move(*path[-1], units)
        return units

    def _move(self, demand: int, place: int, units: int) -> None:
        taken = self.takes[demand]
        taken[place] = taken.get(place, 0) + units
        if taken[place]:
            self._users[place].add(demand)
        else:
            del taken[place]
            self._users[place].discard(demand)
