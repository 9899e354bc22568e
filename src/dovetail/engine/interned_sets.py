"""Interned sets: rows with the same traits, aggregates or attributes share one number.

The snapshot numbers them, feasibility asks which numbers meet a constraint: one answer per
distinct set, not per row. Traits and aggregates come in few sets, and each is decided. Devices
often have an attribute that no other has, a serial number or an address, so there may be as many
attribute sets as devices: a condition is therefore decided for each distinct value of its key, few
as a rule; and what a selector selects is kept, so that only what came since is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from functools import reduce
from itertools import chain
from typing import TypeVar

import numpy as np

from dovetail.core.bounded_cache import BoundedCache
from dovetail.core.columns import Column, Mask
from dovetail.core.interned import Interned
from dovetail.core.selectors.selector import Expression, Selector, condition

T = TypeVar("T", bound=Hashable)

Pair = tuple[str, str]
"""Key and value."""

NO_KEY = -1
"""Of pair number 0, which is none."""

MOST_SELECTORS = 256
"""Whose selection is kept; those not asked about longest are forgotten."""

WORTH_FORGETTING = 4096
"""So many sets that no row has any more, beside twice those in use, are dropped."""

MOST_CONDITIONS = 64
"""Kept at a time: clients write them, and one may name hundreds of aggregates."""


class InternedSets(Interned[frozenset[T]]):
    """Of traits, or of aggregates; number 0 is the empty set. None is taken back: there are few."""

    def __init__(self) -> None:
        super().__init__(frozenset(), MOST_CONDITIONS)

    def number_of(self, members: Iterable[T]) -> int:
        return self.number(frozenset(members))

    def members(self, number: int) -> frozenset[T]:
        return self.keys[number] or frozenset()

    def meeting(self, required: Iterable[Collection[T]], forbidden: Collection[T] = ()) -> Mask:
        """By number: the set has one of each collection required and none of those forbidden."""
        wanted = frozenset(frozenset(alternatives) for alternatives in required)
        banned = frozenset(forbidden)

        def meets(members: frozenset[T]) -> bool:
            return members.isdisjoint(banned) and not any(map(members.isdisjoint, wanted))

        return self.decided((wanted, banned), meets)


class AttributeSets:
    def __init__(self) -> None:
        self._pairs: Interned[Pair] = Interned()
        self._keys: dict[str, int] = {}
        self._sets: Interned[tuple[int, ...]] = Interned(())
        """By the numbers of their pairs."""
        self._key_of = Column(np.int32)
        """By number of a pair: that of its key. This and what follows is as far as was needed."""
        self._set_of = Column(np.int32)
        self._pair_of = Column(np.int32)
        """The members of all sets, set by set: this set has this pair."""
        self._decided: BoundedCache[Selector, Mask] = BoundedCache(MOST_SELECTORS)

    def __len__(self) -> int:
        return len(self._sets)

    def number_of(self, members: Iterable[Pair]) -> int:
        return self.number_of_pairs(sorted(map(self.number_pair, members)))

    def number_of_pairs(self, pairs: Iterable[int]) -> int:
        """Of the set of these pairs, whose numbers are ascending."""
        return self._sets.number(tuple(pairs))

    def members(self, number: int) -> list[Pair]:
        pairs = (self._pairs.keys[pair] for pair in self._sets.keys[number] or ())
        return [pair for pair in pairs if pair is not None]

    def copy(self) -> AttributeSets:
        twin = AttributeSets()
        for name, value in vars(self).items():
            setattr(twin, name, value.copy())
        return twin

    def selected_by(self, selector: Selector) -> Mask:
        """By number: whether the set is selected."""
        known = self._decided.get(selector)
        if known is None:
            known = self._decide(selector, 0)
        elif len(known) < len(self):
            known = np.concatenate((known, self._decide(selector, len(known))))
        self._decided.put(selector, known)
        return known

    def number_pair(self, pair: Pair) -> int:
        self._keys.setdefault(pair[0], len(self._keys))
        return self._pairs.number(pair)

    def _decide(self, selector: Selector, first: int) -> Mask:
        """Of the sets from number `first` on."""
        self._lay_out()
        found: Mask = np.zeros(len(self) - first, np.bool_)
        for branch in selector:
            if branch:
                found |= reduce(np.logical_and, (self._meeting(each, first) for each in branch))
        return found

    def _lay_out(self) -> None:
        """See to it that the columns have all that was numbered."""
        fresh = self._pairs.keys[self._key_of.size :]
        keys = [NO_KEY if pair is None else self._keys[pair[0]] for pair in fresh]
        self._key_of.extend(np.array(keys, np.int32))
        laid_out = int(self._set_of.values[-1]) + 1 if self._set_of.size else 0
        added = [pairs or () for pairs in self._sets.keys[laid_out:]]
        numbers = np.arange(laid_out, len(self), dtype=np.int32)
        self._set_of.extend(np.repeat(numbers, [len(pairs) for pairs in added]))
        self._pair_of.extend(np.fromiter(chain.from_iterable(added), np.int32))

    def _meeting(self, expression: Expression, first: int) -> Mask:
        met = condition(expression)
        found: Mask = np.full(len(self) - first, met(None))
        key = self._keys.get(expression.key)
        if key is None:
            return found
        start = int(self._set_of.values.searchsorted(first))
        sets, pairs = self._set_of.values[start:], self._pair_of.values[start:]
        mine = self._key_of.values.take(pairs) == key
        sets, pairs = sets.compress(mine), pairs.compress(mine)
        verdicts = np.zeros(len(self._pairs), np.bool_)
        verdicts[pairs] = True
        for number in verdicts.nonzero()[0].tolist():
            pair = self._pairs.keys[number]
            verdicts[number] = pair is not None and met(pair[1])
        found[sets - first] = verdicts.take(pairs)
        return found


S = TypeVar("S", InternedSets[int], InternedSets[str], AttributeSets)


def sets_in_use(column: Column, sets: S) -> S:
    """The sets without those that no row has, if they are many; then the column is renumbered."""
    used, which = np.unique(column.values, return_inverse=True)
    if len(sets) <= 2 * len(used) + WORTH_FORGETTING:
        return sets
    kept = type(sets)()
    numbers = [kept.number_of(sets.members(number)) for number in used.tolist()]
    column.assign(np.array(numbers, np.int32).take(which))
    return kept
