"""Subsets that fit: the best one by weight, and all largest ones, by asking an oracle.

The HPA controller asks for the options (optional requirements) that a cluster can give together,
and for the apps that it can take together. Sets are bit masks. The oracle is monotone: what is
within a set that fits, fits; so what was found of a few sets tells of many, and those are not asked
about again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec

MOST_ITEMS = 256
"""That are looked at: a user has a handful of options; a level of the search is one of them."""

Fits = Callable[[int], bool | None]
"""Whether the set fits; None: undecided, which is taken for no, and told."""


class QuestionsSpent(Exception):
    """As many questions were asked as were allowed."""


class MonotoneFamily:
    """Sets that fit, as far as is known, by the largest that do and the smallest that do not."""

    def __init__(self, fits: Fits, questions: int) -> None:
        self._fits, self.left = fits, questions
        self._fitting: list[int] = []
        self._failing: list[int] = []
        self._known: dict[int, bool] = {}
        self.is_decided = True
        """Whether every set that was asked about was decided."""

    def fits(self, members: int) -> bool:
        """Raises QuestionsSpent."""
        if members not in self._known:
            self._known[members] = self._find_out(members)
        return self._known[members]

    def _find_out(self, members: int) -> bool:
        if any(members & ~known == 0 for known in self._fitting):
            return True
        if any(known & ~members == 0 for known in self._failing):
            return False
        if self.left <= 0:
            raise QuestionsSpent
        self.left -= 1
        found = self._fits(members)
        if found is None:
            self.is_decided = False
        elif found:
            self._fitting = [one for one in self._fitting if one & ~members] + [members]
        else:
            self._failing = [one for one in self._failing if members & ~one] + [members]
        return bool(found)


class BestSubset(msgspec.Struct, frozen=True):
    members: int
    weight: int
    is_proven: bool
    """False: there may be a better one."""


class ScarceResource(msgspec.Struct, frozen=True):
    """What there is of a resource for the items of a set, and what each takes of it."""

    free: int
    amounts: tuple[int, ...]

    def lacks(self, item: int) -> bool:
        return self.amounts[item] > max(self.free, 0)


def best_subset(
    weights: Sequence[int], family: MonotoneFamily, scarce: Sequence[ScarceResource] = ()
) -> BestSubset:
    """The heaviest set that fits; of equals the one with the heaviest items, then with those that
    stand first. The empty set fits.

    Branch and bound, depth first, with each item taken before it is left: the first set that is
    found is greedy. A branch ends where all that is left would not make it heavier than the best
    known, or where resources do not suffice for that: of each resource, items are taken by weight
    per amount, the last in part (the bound of a fractional knapsack). Items that want more than
    there is are in no set; of more than `MOST_ITEMS`, the lightest are left out.
    """
    able = [at for at in range(len(weights)) if not any(each.lacks(at) for each in scarce)]
    order = sorted(able, key=lambda at: -weights[at])[:MOST_ITEMS]
    found = _BestSearch([weights[at] for at in order], order, family, scarce)
    try:
        every = sum(1 << at for at in able)
        if family.fits(every):
            return BestSubset(every, sum(weights[at] for at in able), True)
        found.descend(0, 0, 0)
    except QuestionsSpent:
        return BestSubset(found.members, found.weight, False)
    is_proven = family.is_decided and len(able) == len(order)
    return BestSubset(found.members, found.weight, is_proven)


class _BestSearch:
    def __init__(
        self,
        weights: Sequence[int],
        order: Sequence[int],
        family: MonotoneFamily,
        scarce: Sequence[ScarceResource],
    ) -> None:
        self._weights, self._order, self._family = weights, order, family
        self._scarce = [
            (each.free, amounts)
            for each in scarce
            if sum(amounts := [each.amounts[at] for at in order]) > each.free
        ]
        self._rest = [sum(weights[at:]) for at in range(len(weights) + 1)]
        self.members = self.weight = 0

    def descend(self, at: int, members: int, weight: int) -> None:
        """Items from `at` on are open."""
        if weight > self.weight:
            self.members, self.weight = members, weight
        if at == len(self._order) or weight + self._bound(at, members) <= self.weight:
            return
        taken = members | 1 << self._order[at]
        if self._family.fits(taken):
            self.descend(at + 1, taken, weight + self._weights[at])
        self.descend(at + 1, members, weight)

    def _bound(self, at: int, members: int) -> int:
        """What open items can add at most."""
        bound = self._rest[at]
        for free, amounts in self._scarce:
            taken = sum(
                amount
                for amount, item in zip(amounts, self._order, strict=True)
                if members >> item & 1
            )
            bound = min(bound, self._knapsack(at, free - taken, amounts))
        return bound

    def _knapsack(self, at: int, free: int, amounts: Sequence[int]) -> int:
        found = 0
        items = []
        for weight, amount in zip(self._weights[at:], amounts[at:], strict=True):
            if amount:
                items.append((weight, amount))
            else:
                found += weight
        items.sort(key=lambda each: Fraction(-each[0], each[1]))
        for weight, amount in items:
            if amount > free:
                return found + weight * max(free, 0) // amount
            free -= amount
            found += weight
        return found


class LargestSets(msgspec.Struct, frozen=True):
    sets: tuple[int, ...]
    """Those with the items that stand first come first. Every item is in one."""
    is_complete: bool
    """False: there may be others."""


def largest_sets(count: int, family: MonotoneFamily, most: int) -> LargestSets:
    """All sets of `count` items that fit and to which nothing can be added; at most so many. Every
    item by itself fits.

    Depth first, each item taken before it is left, so sets come in their order. A branch ends where
    an item that was left fits beside all that is still possible: no largest set there is without
    it. At the end of a branch nothing is possible any more, so what comes there is largest.
    """
    search = _LargestSearch(count, family, most)
    try:
        is_complete = search.descend(0, 0) and family.is_decided
    except QuestionsSpent:
        is_complete = False
    sets = list(search.sets)
    if not is_complete:
        # An item that is in none could be taken for one that is in nobody's way.
        missing = [at for at in range(count) if not any(one >> at & 1 for one in sets)]
        sets += [search.grown(1 << at) for at in missing]
    sets.sort(key=lambda one: [not one >> at & 1 for at in range(count)])
    return LargestSets(tuple(dict.fromkeys(sets)), is_complete)


class _LargestSearch:
    def __init__(self, count: int, family: MonotoneFamily, most: int) -> None:
        self._count, self._family, self._most = count, family, most
        self.sets: list[int] = []

    def descend(self, at: int, members: int) -> bool:
        """Items from `at` on are open; False if it ended early."""
        if len(self.sets) >= self._most:
            return False
        every = (1 << self._count) - 1
        behind = every >> at << at
        left = every & ~members & ~behind
        if any(
            left >> one & 1 and self._family.fits(members | 1 << one | behind) for one in range(at)
        ):
            return True
        if at == self._count:
            self.sets.append(members)
            return True
        if self._family.fits(members | 1 << at) and not self.descend(at + 1, members | 1 << at):
            return False
        return self.descend(at + 1, members)

    def grown(self, members: int) -> int:
        """With all that can be added, in turn, as far as questions go."""
        for at in range(self._count):
            try:
                if self._family.fits(members | 1 << at):
                    members |= 1 << at
            except QuestionsSpent:
                break
        return members


def smallest_failing(items: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Items that fail together, and would not without any of them; those that stand first, where
    there is a choice. All items together fail, and what contains items that fail does.

    The first item with which those before it fail is one of them; the others are looked for among
    those before it, with it in place. Each is found by bisection.
    """
    found: list[int] = []
    left = list(items)
    while not found or not fails(found):
        low, high = 0, len(left)
        while high - low > 1:
            middle = (low + high) // 2
            if fails([*left[:middle], *found]):
                high = middle
            else:
                low = middle
        if not high:
            break
        found.insert(0, left[high - 1])
        left = left[: high - 1]
    return found
