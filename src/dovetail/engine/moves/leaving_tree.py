"""Sets of consumers whose leaving makes one tree fit.

`leaving` asks the trees of a fleet in turn. A tree is *short* of a class at a place where less is
free than all parts of the request that could be served there want together: more of it elsewhere
makes no difference, so only those who hold of what is short are candidates to leave, and those who
hold the same of it are tried once. A depth first search takes one after the other, cut off where a
lower bound (those who have to leave before each slot has an option) says that more would have to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.fit_test.offers import Place
from dovetail.engine.explain.fit_test.parts import PartialSlot
from dovetail.engine.moves.candidates import ENOUGH, AlikeHolders, Candidates, total
from dovetail.engine.moves.holders import RowClass

MANY = 2**30
KINDS_PER_YIELD = 1024
Chosen = Sequence[int]
"""Kinds of candidates, as often as there are to leave of each."""


class LeavingTree:
    """One tree, and those who hold something of it that the request is short of."""

    def __init__(self, fleet: FleetProblem, tree: int) -> None:
        self.tree = tree
        self._own_rows = fleet.snapshot.rows_of(tree)
        self._problem = fleet.problem(tree)
        self._partial = fleet.demands.only(fleet.demands.droppable)
        self._possible: list[list[Place]] = []
        """By slot: the places that could serve it if nothing were in use."""
        self.short: dict[RowClass, tuple[Place, str]] = {}
        """Where more would have to be free; once it was looked at."""
        self._kinds: list[AlikeHolders] = []
        self._holding: dict[RowClass, list[tuple[int, int]]] = defaultdict(list)
        """By what is short: amount and kind of those who hold of it, largest first."""
        self.bound = 0
        """At least so many have to leave, once candidates are known."""

    def look(self) -> Work[None]:
        """Find the places of each slot, and what is short there; call it first."""
        idle = self._problem.idle()
        wanted: Counter[tuple[Place, str]] = Counter()
        for slot in self._partial.slots:
            places = idle.options(slot)
            self._possible.append(places)
            for name, amount in slot.amounts:
                for place in places:
                    wanted[place, name] += amount
            yield
        for at, amount in wanted.items():
            if self._problem.supply(*at).free < amount:
                self.short[self._problem.rows[at[0]], at[1]] = at

    def take(self, candidates: Candidates) -> Work[None]:
        """Those who may leave: the foremost of them; call it next."""
        kinds, is_all = yield from self._candidates(candidates, foremost=True)
        self._kinds = sorted(kinds, key=lambda one: (-total(one.freed.items()), one.numbers[0]))
        for at, kind in enumerate(self._kinds):
            for entry, amount in kind.freed.items():
                self._holding[entry].append((amount, at))
        for held in self._holding.values():
            held.sort(reverse=True)
        yield
        bound = self._bound([], 0)
        # So many of the foremost are those who hold most anywhere; beyond them others may.
        self.bound = bound if is_all else min(bound, ENOUGH + 1)

    def _candidates(
        self, candidates: Candidates, *, foremost: bool
    ) -> Work[tuple[list[AlikeHolders], bool]]:
        own = {entry for entry in self.short if entry[0] in self._own_rows}
        return (yield from candidates.of(own, frozenset(self.short) - own, foremost=foremost))

    def _freed(self, taken: Mapping[int, int]) -> Counter[RowClass]:
        freed: Counter[RowClass] = Counter()
        for at, count in taken.items():
            freed += times(self._kinds[at].freed, count)
        return freed

    def _bound(self, chosen: Chosen, first: int) -> int:
        """At least so many more have to leave, of kinds from `first` on."""
        taken = Counter(chosen)
        freed = self._freed(taken)
        needed = 0
        for slot, places in zip(self._partial.slots, self._possible, strict=True):
            least = min(
                (self._needed(slot, place, freed, taken, first) for place in places), default=MANY
            )
            needed = max(needed, least)
        return needed

    def _needed(
        self,
        slot: PartialSlot,
        place: Place,
        freed: Mapping[RowClass, int],
        taken: Mapping[int, int],
        first: int,
    ) -> int:
        most = 0
        for name, amount in slot.amounts:
            entry = (self._problem.rows[place], name)
            missing = amount - self._problem.supply(place, name).free - freed.get(entry, 0)
            count = 0
            for each, at in self._holding.get(entry, ()) if missing > 0 else ():
                if at >= first:
                    some = min(self._kinds[at].count - taken.get(at, 0), -(-missing // each))
                    missing -= some * each
                    count += some
                if missing <= 0:
                    break
            most = max(most, count if missing <= 0 else MANY)
        return most

    def _fits_with(self, freed: Mapping[RowClass, int]) -> Work[bool]:
        free = {
            self.short[entry]: self._problem.supply(*self.short[entry]).free + amount
            for entry, amount in freed.items()
        }
        return (yield from self._problem.with_free(free).fits(self._partial))

    # -- few of them -----------------------------------------------------------------------------

    def sets(self, size: int, most: int) -> Work[list[list[int]]]:
        """Up to `most` sets of just so many holders, by number; none could be smaller."""
        found: list[list[int]] = []
        yield from self._choose([], size, most, found)
        return found

    def _choose(
        self, chosen: list[int], size: int, most: int, found: list[list[int]]
    ) -> Work[None]:
        if len(chosen) == size:
            taken = Counter(chosen)
            if (yield from self._fits_with(self._freed(taken))):
                found.append(
                    [each for at, count in taken.items() for each in self._kinds[at].first(count)]
                )
            return
        first = chosen[-1] if chosen else 0
        for at in range(first, len(self._kinds)):
            if len(found) >= most:
                return
            if chosen.count(at) == self._kinds[at].count:
                continue
            more = [*chosen, at]
            if self._bound(more, at) <= size - len(more):
                yield from self._choose(more, size, most, found)
            yield

    # -- many of them ----------------------------------------------------------------------------

    def shrunk(self, candidates: Candidates) -> Work[list[int] | None]:
        """A set no part of which would do; None if the tree does not fit without all of them.

        Kinds that free least come first, and as many of them stay as can, by halving; then of the
        next one as many as can, and so on. Since more that is free never hurts, none of those who
        leave could stay afterwards either.
        """
        kinds, _ = yield from self._candidates(candidates, foremost=False)
        kinds = yield from in_order_of_total(kinds)
        rest = yield from sums_from(kinds)
        leaving: list[int] = []
        freed: Counter[RowClass] = Counter()
        if not (yield from self._fits_with(freed + rest[0])):
            return None
        at = 0
        while not (yield from self._fits_with(freed)):
            low, high = at, len(kinds) - 1
            while low < high:
                middle = (low + high + 1) // 2
                if (yield from self._fits_with(freed + rest[middle])):
                    low = middle
                else:
                    high = middle - 1
                yield
            kind = kinds[low]
            count = yield from self._fewest_of(kind, freed + rest[low + 1])
            leaving += kind.first(count)
            freed += times(kind.freed, count)
            at = low + 1
        return leaving

    def _fewest_of(self, kind: AlikeHolders, freed: Counter[RowClass]) -> Work[int]:
        """So many have to leave beside what is freed otherwise; all of them are enough."""
        low, high = 1, kind.count
        while low < high:
            middle = (low + high) // 2
            if (yield from self._fits_with(freed + times(kind.freed, middle))):
                high = middle
            else:
                low = middle + 1
            yield
        return high


def in_order_of_total(kinds: Sequence[AlikeHolders]) -> Work[list[AlikeHolders]]:
    """Those who free least first."""
    totals = np.zeros(len(kinds), np.int64)
    for at, kind in enumerate(kinds):
        totals[at] = total(kind.freed.items())
        if at % KINDS_PER_YIELD == KINDS_PER_YIELD - 1:
            yield
    return [kinds[at] for at in np.argsort(totals, kind="stable").tolist()]


def sums_from(kinds: Sequence[AlikeHolders]) -> Work[list[Counter[RowClass]]]:
    """By place in the list, and behind it: what is free if all from there on leave."""
    found: list[Counter[RowClass]] = [Counter()]
    for at, kind in enumerate(reversed(kinds)):
        found.append(found[-1] + times(kind.freed, kind.count))
        if at % KINDS_PER_YIELD == KINDS_PER_YIELD - 1:
            yield
    found.reverse()
    return found


def times(freed: Mapping[RowClass, int], count: int) -> Counter[RowClass]:
    return Counter({entry: amount * count for entry, amount in freed.items()})
