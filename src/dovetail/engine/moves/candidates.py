"""Candidates to leave: who holds something that a tree is short of, and who frees the same there.

`leaving_tree` asks for each tree. Of a pool that many hosts share all its consumers are candidates
for each of them, so they are sorted once for all trees that are short of the same of it; a tree
adds those who hold something of its own. Sets of a few consumers are looked for among the
*foremost*: a kind of which ENOUGH others free at least as much everywhere is never needed, since
one of those could take its place. It yields after each piece of work that grows with the holders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import merge
from itertools import islice

import msgspec
import numpy as np

from dovetail.engine.moves.holders import Holder, RowClass
from dovetail.engine.work import Work

ENOUGH = 8
"""More than leave in an exact set, and some to choose from."""
HOLDERS_PER_YIELD = 512

Freed = frozenset[tuple[RowClass, int]]
"""What is free once a consumer has left, as far as it matters."""
Kinds = dict[Freed, list[int]]
"""By what they free: holders by number."""


class AlikeHolders(msgspec.Struct, frozen=True):
    """Holders whose leaving frees the same for a tree."""

    freed: Mapping[RowClass, int]
    count: int
    numbers: Sequence[int]
    besides: AbstractSet[int]
    """Those of the numbers who hold something of the tree itself, so that they free more."""

    def first(self, count: int) -> list[int]:
        return list(islice((each for each in self.numbers if each not in self.besides), count))


class Candidates:
    """The holders of a fleet, for trees that ask by what they are short of."""

    def __init__(self, holders: Sequence[Holder]) -> None:
        self.holders = holders
        self._by_entry: dict[RowClass, list[int]] = {}
        self._shared: dict[frozenset[RowClass], tuple[Kinds, Kinds]] = {}

    def index(self, short: Collection[RowClass]) -> Work[None]:
        """Find the holders of what any tree is short of; call it first."""
        for number, holder in enumerate(self.holders):
            for entry in holder.held:
                if entry in short:
                    self._by_entry.setdefault(entry, []).append(number)
            if number % HOLDERS_PER_YIELD == HOLDERS_PER_YIELD - 1:
                yield

    def of(
        self, own: AbstractSet[RowClass], shared: frozenset[RowClass], *, foremost: bool
    ) -> Work[tuple[list[AlikeHolders], bool]]:
        """Of a tree that is short of these, its own and what is shared with it; are they all?"""
        mine, all_mine = yield from self._kinds(own, own | shared)
        theirs, all_theirs = yield from self._of_shared(shared)
        besides = {number for numbers in all_mine.values() for number in numbers}
        elsewhere: Counter[Freed] = Counter()
        for freed, numbers in all_mine.items():
            of_shared = frozenset(one for one in freed if one[0] in shared)
            elsewhere[of_shared] += len(numbers)
        found = []
        for freed, numbers in (mine if foremost else all_mine).items():
            found.append(AlikeHolders(dict(freed), len(numbers), numbers, frozenset()))
        yield
        for done, (freed, numbers) in enumerate((theirs if foremost else all_theirs).items(), 1):
            count = len(numbers) - elsewhere[freed]
            if count:
                found.append(AlikeHolders(dict(freed), count, numbers, besides))
            if done % HOLDERS_PER_YIELD == 0:
                yield
        is_all = len(mine) == len(all_mine) and len(theirs) == len(all_theirs)
        return found, is_all or not foremost

    def _of_shared(self, shared: frozenset[RowClass]) -> Work[tuple[Kinds, Kinds]]:
        known = self._shared.get(shared)
        if known is None:
            known = self._shared[shared] = yield from self._kinds(shared, shared)
        return known

    def _kinds(
        self, held: AbstractSet[RowClass], counted: AbstractSet[RowClass]
    ) -> Work[tuple[Kinds, Kinds]]:
        """Those who hold some of `held`, by what they free of what counts: foremost, and all."""
        kinds: Kinds = {}
        last = -1
        for done, number in enumerate(merge(*(self._by_entry.get(one, ()) for one in held)), 1):
            if number != last:
                everything = self.holders[number].held.items()
                freed = frozenset(one for one in everything if one[0] in counted)
                kinds.setdefault(freed, []).append(number)
                last = number
            if done % HOLDERS_PER_YIELD == 0:
                yield
        return (yield from foremost_of(kinds)), kinds


def foremost_of(kinds: Kinds) -> Work[Kinds]:
    """Without those of which ENOUGH others free at least as much, those who free most first."""
    found: Kinds = {}
    kept: list[tuple[dict[RowClass, int], int]] = []
    for done, freed in enumerate((yield from most_first(kinds)), 1):
        if not outdone(freed, kept):
            found[freed] = kinds[freed]
            kept.append((dict(freed), len(kinds[freed])))
        if done % HOLDERS_PER_YIELD == 0:
            yield
    return found


def most_first(kinds: Iterable[Freed]) -> Work[list[Freed]]:
    """Sorted by NumPy: of a pool that everybody shares there may be very many."""
    found = list(kinds)
    totals = np.zeros(len(found), np.int64)
    for at, freed in enumerate(found):
        totals[at] = -total(freed)
        if at % HOLDERS_PER_YIELD == HOLDERS_PER_YIELD - 1:
            yield
    return [found[at] for at in np.argsort(totals, kind="stable").tolist()]


def outdone(freed: Freed, others: Iterable[tuple[Mapping[RowClass, int], int]]) -> bool:
    """Whether ENOUGH others free at least as much; `others`: what they free, and how many do."""
    left = ENOUGH
    for amounts, count in others:
        if all(amounts.get(entry, 0) >= amount for entry, amount in freed):
            left -= count
            if left <= 0:
                return True
    return False


def total(freed: Iterable[tuple[RowClass, int]]) -> int:
    return sum(amount for _, amount in freed)
