"""The smallest sets of consumers whose leaving makes a tree fit.

Up to EXACT_MOVES consumers the sets are exact: trees are tried in the order of a lower bound (the
consumers that have to leave before each slot has an option), and within a tree a depth first search
takes one consumer after the other, cut off where the bound says that more would have to leave.
Larger sets are shrunk instead: all consumers of a tree leave, and one after the other comes back if
the tree still fits; no part of what is left would do. It ends since the sets are finite, and yields
after each tree and each consumer tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.engine.explain.fit_test.demands import PartialSlot
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.fit_test.offers import Place
from dovetail.engine.explain.fit_test.tree_problem import TreeProblem
from dovetail.engine.moves.holders import Holder

EXACT_MOVES = 3
MOST_SETS = 8
"""Found of one size: more would not be told."""
MOST_SHRUNK = 16
"""Trees that are tried for larger sets."""
MANY = 2**30

Local = Mapping[tuple[Place, str], int]
"""What a consumer holds of a tree's places."""


class LeavingSet(msgspec.Struct, frozen=True):
    """Consumers whose leaving makes a tree fit."""

    tree: int
    leaving: Sequence[Holder]
    smallest: bool
    """Whether fewer would certainly not do, on any host that was looked at."""


class LeavingTree:
    """One tree, and those who hold something of it that the request needs."""

    def __init__(self, fleet: FleetProblem, tree: int, holders: Iterable[Holder]) -> None:
        self.tree = tree
        self._problem = fleet.problem(tree)
        self._idle = self._problem.idle()
        self._partial = fleet.demands.only(fleet.demands.droppable)
        places = {row: place for place, row in enumerate(self._problem.rows)}
        self._holders: list[tuple[Holder, Local]] = []
        for holder in holders:
            local = {
                (places[row], name): amount
                for (row, name), amount in holder.held.items()
                if row in places and (places[row], name) in self._problem.supplies
            }
            if local:
                self._holders.append((holder, local))
        # Those who hold most first: with them fewer have to leave.
        self._holders.sort(key=lambda one: (-sum(one[1].values()), one[0].consumer))
        self._possible: list[list[Place]] = []
        self.bound = 0
        """At least so many have to leave, once it was looked at."""

    def look(self) -> Work[None]:
        """Find the places of each slot and the bound; call it first."""
        for slot in self._partial.slots:
            self._possible.append(self._idle.options(slot))
            yield
        self.bound = self._bound({}, range(len(self._holders)))

    def _freed(self, chosen: Sequence[int]) -> dict[tuple[Place, str], int]:
        freed: dict[tuple[Place, str], int] = defaultdict(int)
        for at in chosen:
            for place, amount in self._holders[at][1].items():
                freed[place] += amount
        return freed

    def _bound(self, freed: Mapping[tuple[Place, str], int], left: Iterable[int]) -> int:
        """At least so many more of those left have to leave."""
        held: dict[tuple[Place, str], list[int]] = defaultdict(list)
        for at in left:
            for place, amount in self._holders[at][1].items():
                held[place].append(amount)
        for amounts in held.values():
            amounts.sort(reverse=True)
        needed = 0
        for slot, places in zip(self._partial.slots, self._possible, strict=True):
            least = min((self._needed(slot, place, freed, held) for place in places), default=MANY)
            needed = max(needed, least)
        return needed

    def _needed(
        self,
        slot: PartialSlot,
        place: Place,
        freed: Mapping[tuple[Place, str], int],
        held: Mapping[tuple[Place, str], list[int]],
    ) -> int:
        most = 0
        for name, amount in slot.amounts:
            at = (place, name)
            missing = amount - self._problem.supply(place, name).free - freed.get(at, 0)
            count = 0
            for each in held.get(at, ()):
                if missing <= 0:
                    break
                missing -= each
                count += 1
            most = max(most, count if missing <= 0 else MANY)
        return most

    def _with(self, chosen: Sequence[int]) -> TreeProblem:
        free = {
            at: self._problem.supplies[at].free + amount
            for at, amount in self._freed(chosen).items()
        }
        return self._problem.with_free(free)

    def fits_without(self, chosen: Sequence[int]) -> Work[bool]:
        return (yield from self._with(chosen).fits(self._partial))

    def sets(self, size: int, most: int) -> Work[list[list[Holder]]]:
        """Up to `most` sets of just so many, none of which could be smaller."""
        found: list[list[Holder]] = []
        yield from self._choose([], 0, size, most, found)
        return found

    def _choose(
        self, chosen: list[int], first: int, size: int, most: int, found: list[list[Holder]]
    ) -> Work[None]:
        if len(chosen) == size:
            if (yield from self.fits_without(chosen)):
                found.append([self._holders[at][0] for at in chosen])
            return
        tried: set[frozenset[tuple[tuple[Place, str], int]]] = set()
        for at in range(first, len(self._holders)):
            if len(found) >= most:
                return
            alike = frozenset(self._holders[at][1].items())
            if alike in tried:
                continue  # Whatever leaves with it, the one before does as well.
            tried.add(alike)
            more = [*chosen, at]
            left = size - len(more)
            if self._bound(self._freed(more), range(at + 1, len(self._holders))) <= left:
                yield from self._choose(more, at + 1, size, most, found)
            yield

    def shrunk(self) -> Work[list[Holder] | None]:
        """A set no part of which would do; None if the tree does not fit without all of them."""
        chosen = list(range(len(self._holders)))
        if not (yield from self.fits_without(chosen)):
            return None
        for at in reversed(range(len(self._holders))):
            fewer = [each for each in chosen if each != at]
            if (yield from self.fits_without(fewer)):
                chosen = fewer
            yield
        return [self._holders[at][0] for at in chosen]


class LeavingSearch:
    """The search over all trees that would fit if they were empty; batches of trees come in."""

    def __init__(self, fleet: FleetProblem) -> None:
        self._fleet = fleet
        self._trees: list[LeavingTree] = []

    def look_at(self, tree: int, holders: Iterable[Holder]) -> Work[None]:
        found = LeavingTree(self._fleet, tree, holders)
        yield from found.look()
        self._trees.append(found)

    def smallest(self) -> Work[list[LeavingSet]]:
        self._trees.sort(key=lambda tree: tree.bound)
        for size in range(1, EXACT_MOVES + 1):
            found: list[LeavingSet] = []
            for tree in self._trees:
                if tree.bound > size or len(found) >= MOST_SETS:
                    break
                sets = yield from tree.sets(size, 2)
                found += [LeavingSet(tree.tree, leaving, True) for leaving in sets]
                yield
            if found:
                return found
        return (yield from self._larger())

    def _larger(self) -> Work[list[LeavingSet]]:
        best: list[tuple[int, list[Holder]]] = []
        for tree in self._trees[:MOST_SHRUNK]:
            leaving = yield from tree.shrunk()
            if leaving:
                best.append((tree.tree, leaving))
            yield
        fewest = min((len(leaving) for _, leaving in best), default=0)
        least = max(min((tree.bound for tree in self._trees), default=0), EXACT_MOVES + 1)
        return [
            LeavingSet(tree, leaving, fewest <= least)
            for tree, leaving in best
            if len(leaving) == fewest
        ]
