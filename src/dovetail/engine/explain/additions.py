"""What to add to a tree so that it fits: a smallest set of entries, and of each the least amount.

`host` asks for the nearest trees. An entry is a provider and a resource class. Only those are added
to that have some of the class already, if that can be enough, else any that meet what a group
demands. First one assignment of the tree with as much as is asked for at every entry tells some
that are enough; what could be left out of them is. Then all sets of up to EXACT_ENTRIES are looked
through: wherever a slot has no provider, some provider needs its first class that is lacking, so
only those are branched over; where each slot has one, and groups contend or are tied, every entry
is. At last each amount is lowered to the smallest that is enough, one after the other: since more
of a class never hurts, none could be lowered afterwards either.

It ends: a branch adds an entry each time, EXACT_ENTRIES at most, and after MOST_TESTS fit tests the
search is given up. Very many groups that contend for a class are a packing problem: after
MOST_STEPS of backtracking what is not known by then counts as not enough. Either way what was found
before is told, with the word that less may do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dovetail.engine.explain.fit_test.demands import Demands
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.offers import Place
from dovetail.engine.explain.fit_test.parts import PartialSlot
from dovetail.engine.explain.fit_test.tree_problem import TreeProblem

Entry = tuple[Place, str]
"""A provider of the tree, and a resource class."""
Amounts = dict[Entry, int]
EXACT_ENTRIES = 2
"""Sets of up to so many entries are all looked through."""
MOST_TESTS = 64
"""Fit tests of that search."""
MOST_STEPS = 8
"""Yields of all tests of one tree together: such a step of backtracking is a millisecond or two."""
MOST_COMPARED = 4
"""Sets of the same size of which the amounts are compared."""
MOST_SUMS = 256
"""Of amounts that an entry may have to serve; if there are more, amounts are halved instead."""


class TreeAdditions(msgspec.Struct, frozen=True):
    amounts: Mapping[Entry, int]
    """None if the tree lacks more than amounts, or if units never allow what is asked for."""
    smallest: bool
    """Whether fewer entries, or less of one, would certainly not do."""


NOTHING = TreeAdditions({}, True)


def additions(demands: Demands, now: TreeProblem) -> Work[TreeAdditions]:
    """For a tree that does not fit."""
    search = AdditionSearch(demands, now)
    some = yield from search.enough()
    if some is None:
        return NOTHING
    sets, smallest = yield from search.smallest_sets(some)
    best = yield from search.least_of(sets)
    return TreeAdditions(best, smallest and search.is_certain)


class AdditionSearch:
    """One tree: its entries, and how much of each would do for everything that is asked of it."""

    def __init__(self, demands: Demands, now: TreeProblem) -> None:
        self._now = now
        self._partial = demands.only(demands.droppable)
        self._wanted: Counter[str] = Counter()
        for slot in self._partial.slots:
            self._wanted.update(dict(slot.amounts))
        self._serving = [list(self._reachable(slot)) for slot in self._partial.slots]
        """By slot: the places that could serve it with more of what it asks for."""
        self._enough: Amounts = {}
        """By entry: as much as all slots together ask for beyond what is free; best first."""
        self._tests = self._steps = 0
        self.is_certain = True
        """Whether every test was carried through."""

    def _reachable(self, slot: PartialSlot) -> Iterator[Place]:
        now, need = self._now, slot.need
        for place, ways in zip(now.places, now.met(slot.group), strict=True):
            if any(told & need == need for told in ways) and all(
                (place, name) not in now.supplies or now.supply(place, name).allows(amount)
                for name, amount in slot.amounts
            ):
                yield place

    def enough(self) -> Work[list[Entry] | None]:
        """Entries that are enough, none of which could be left out; call it first."""
        entries = dict.fromkeys(
            (place, name)
            for slot, places in zip(self._partial.slots, self._serving, strict=True)
            for place in places
            for name, _ in slot.amounts
            if self._wanted[name] > self._now.supply(place, name).free
        )
        there = [entry for entry in entries if entry in self._now.supplies]
        for pool in (there, list(entries)):
            self._enough = {entry: self._most(entry) for entry in sorted(pool, key=self._share)}
            twin = self._with(self._enough)
            chosen = yield from twin.assignment(self._partial)
            if chosen is not None:
                return (yield from self._needed(list(self._overflowing(chosen))))
            yield
        return None

    def _most(self, entry: Entry) -> int:
        return self._wanted[entry[1]] - self._now.supply(*entry).free

    def _share(self, entry: Entry) -> float:
        """What is lacking at an entry, compared with what is asked for."""
        return self._most(entry) / self._wanted[entry[1]]

    def _overflowing(self, chosen: Sequence[Place]) -> Iterator[Entry]:
        taken: Counter[Entry] = Counter()
        for slot, place in zip(self._partial.slots, chosen, strict=True):
            taken.update({(place, name): amount for name, amount in slot.amounts})
        for entry, amount in taken.items():
            if amount > self._now.supply(*entry).free:
                yield entry

    def _needed(self, entries: Sequence[Entry]) -> Work[list[Entry]]:
        left = list(entries)
        for entry in reversed(entries):
            fewer = [one for one in left if one != entry]
            if (yield from self._fits(fewer)):
                left = fewer
            yield
        return left

    def _with(self, added: Mapping[Entry, int]) -> TreeProblem:
        return self._now.with_more(added, self._partial.slots)

    def _fits(self, entries: Iterable[Entry]) -> Work[bool]:
        return (yield from self._suffices({entry: self._enough[entry] for entry in entries}))

    def _suffices(self, added: Mapping[Entry, int]) -> Work[bool]:
        """Whether the tree fits with these; no, if that takes long, and then it is not certain."""
        testing = self._with(added).fits(self._partial)
        while self._steps < MOST_STEPS:
            try:
                next(testing)
            except StopIteration as end:
                return bool(end.value)
            self._steps += 1
            yield
        testing.close()
        self.is_certain = False
        return False

    # -- the fewest entries ----------------------------------------------------------------------

    def smallest_sets(self, some: list[Entry]) -> Work[tuple[list[list[Entry]], bool]]:
        """Sets as small as can be found, and whether there are certainly no smaller.

        `some` is such a set already, of which no part would do.
        """
        for size in range(1, min(len(some), EXACT_ENTRIES) + 1):
            found: dict[frozenset[Entry], list[Entry]] = {}
            yield from self._choose([], size, 0, found)
            if found:
                return list(found.values()), True
            if self._tests >= MOST_TESTS:
                return [some], size == len(some)
        return [some], len(some) <= EXACT_ENTRIES + 1

    def _choose(
        self, chosen: list[Entry], left: int, first: int, found: dict[frozenset[Entry], list[Entry]]
    ) -> Work[None]:
        """Every set with these and so many more that is enough, MOST_COMPARED at most."""
        if not left:
            self._tests += 1
            if frozenset(chosen) not in found and (yield from self._fits(chosen)):
                found[frozenset(chosen)] = chosen
            yield
            return
        twin = self._with({entry: self._enough[entry] for entry in chosen})
        needed = self._needed_by_one(twin, left)
        more = list(self._enough)[first:] if needed is None else needed
        for at, entry in enumerate(more, first):
            if self._tests >= MOST_TESTS or len(found) >= MOST_COMPARED:
                return
            if entry not in chosen:
                after = at + 1 if needed is None else first
                yield from self._choose([*chosen, entry], left - 1, after, found)

    def _needed_by_one(self, twin: TreeProblem, most: int) -> list[Entry] | None:
        """Entries one of which has to be added for a slot without a provider; None: there is none.

        Of a provider that lacks several classes all have to be added, so the first stands for them.
        """
        for slot, places in zip(self._partial.slots, self._serving, strict=True):
            if twin.options(slot):
                continue
            found = []
            for place in places:
                lacking = [
                    (place, name)
                    for name, amount in slot.amounts
                    if not twin.has_room(place, name, amount)
                ]
                if len(lacking) <= most and all(entry in self._enough for entry in lacking):
                    found.append(lacking[0])
            return sorted(found, key=self._share)
        return None

    # -- the least of each -----------------------------------------------------------------------

    def least_of(self, sets: Iterable[list[Entry]]) -> Work[Amounts]:
        """Of these sets the one that adds least: to few new classes, and a small share."""
        best: Amounts = {}
        least = (len(self._wanted) * len(self._now.places) + 1, 0.0)
        for entries in sets:
            amounts = yield from self._lowered(entries)
            new = sum(entry not in self._now.supplies for entry in entries)
            share = sum(amount / self._wanted[name] for (_, name), amount in amounts.items())
            if (new, share) < least:
                best, least = amounts, (new, share)
        return best

    def _lowered(self, entries: Iterable[Entry]) -> Work[Amounts]:
        amounts = {entry: self._enough[entry] for entry in entries}
        for entry in amounts:
            levels = self._levels(entry)
            low, high = 0, len(levels) - 1
            while low < high:
                middle = (low + high) // 2
                if (yield from self._suffices({**amounts, entry: levels[middle]})):
                    high = middle
                else:
                    low = middle + 1
                yield
            amounts[entry] = levels[high]
        return amounts

    def _levels(self, entry: Entry) -> Sequence[int]:
        """The amounts that can make a difference, ascending: what some of the slots need there."""
        place, name = entry
        free, most = self._now.supply(place, name).free, self._enough[entry]
        sums = {0}
        for slot, places in zip(self._partial.slots, self._serving, strict=True):
            amount = dict(slot.amounts).get(name)
            if amount is not None and place in places:
                sums |= {each + amount for each in sums}
            if len(sums) > MOST_SUMS:
                return range(1, most + 1)
        return [*sorted({each - free for each in sums if 0 < each - free < most}), most]
