"""Interned attributes: which distinct sets a selector selects.

Devices often have an attribute that no other has, a serial number or an address, so there may be
as many sets as devices. That is why a condition is decided for each distinct value of its key, few
as a rule, and not for each set; and what a selector selects is kept, so that only what came since
is decided.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import reduce
from itertools import chain

import numpy as np

from dovetail.core.selectors.selector import Expression, Selector, condition
from dovetail.engine.columns import Column, Mask

Pair = tuple[str, str]
"""Key and value."""

KEPT = 256
"""Selectors; those not asked about longest are forgotten."""


class AttributeSets:
    def __init__(self) -> None:
        self._pairs: dict[Pair, int] = {}
        """Numbers of pairs; likewise of keys, and of sets by the numbers of their pairs."""
        self._keys: dict[str, int] = {}
        self._sets: dict[tuple[int, ...], int] = {(): 0}
        self._listed: list[Pair] = []
        """By number."""
        self._members: list[tuple[int, ...]] = [()]
        """Likewise: the numbers of the pairs of each set."""
        self._key_of = Column(np.int32)
        """By number of a pair: that of its key. This and what follows is as far as was needed."""
        self._set_of = Column(np.int32)
        self._pair_of = Column(np.int32)
        """The members of all sets, set by set: this set has this pair."""
        self._decided: OrderedDict[Selector, Mask] = OrderedDict()

    def __len__(self) -> int:
        return len(self._members)

    def number(self, members: Iterable[Pair]) -> int:
        pairs = tuple(sorted(map(self._numbered, members)))
        number = self._sets.setdefault(pairs, len(self))
        if number == len(self):
            self._members.append(pairs)
        return number

    def members(self, number: int) -> list[Pair]:
        return [self._listed[pair] for pair in self._members[number]]

    def copy(self) -> AttributeSets:
        twin = AttributeSets()
        for name, value in vars(self).items():
            setattr(twin, name, value.copy())
        return twin

    def selected(self, selector: Selector) -> Mask:
        """By number: whether the set is selected."""
        known = self._decided.get(selector)
        if known is None:
            known = self._decide(selector, 0)
        elif len(known) < len(self):
            known = np.concatenate((known, self._decide(selector, len(known))))
        self._decided[selector] = known
        self._decided.move_to_end(selector)
        while len(self._decided) > KEPT:
            self._decided.popitem(last=False)
        return known

    def _numbered(self, pair: Pair) -> int:
        number = self._pairs.setdefault(pair, len(self._listed))
        if number == len(self._listed):
            self._listed.append(pair)
            self._keys.setdefault(pair[0], len(self._keys))
        return number

    def _decide(self, selector: Selector, first: int) -> Mask:
        """Of the sets from number `first` on."""
        self._lay_out()
        found: Mask = np.zeros(len(self) - first, np.bool_)
        for branch in selector:
            if branch:
                found |= reduce(np.logical_and, (self._met(each, first) for each in branch))
        return found

    def _lay_out(self) -> None:
        """See to it that the columns have all that was numbered."""
        fresh = self._listed[self._key_of.size :]
        self._key_of.extend(np.array([self._keys[key] for key, _ in fresh], np.int32))
        laid_out = int(self._set_of.values[-1]) + 1 if self._set_of.size else 0
        added = self._members[laid_out:]
        numbers = np.arange(laid_out, len(self), dtype=np.int32)
        self._set_of.extend(np.repeat(numbers, [len(pairs) for pairs in added]))
        self._pair_of.extend(np.fromiter(chain.from_iterable(added), np.int32))

    def _met(self, expression: Expression, first: int) -> Mask:
        met = condition(expression)
        found: Mask = np.full(len(self) - first, met(None))
        key = self._keys.get(expression.key)
        if key is None:
            return found
        start = int(self._set_of.values.searchsorted(first))
        sets, pairs = self._set_of.values[start:], self._pair_of.values[start:]
        mine = self._key_of.values.take(pairs) == key
        sets, pairs = sets.compress(mine), pairs.compress(mine)
        verdicts = np.zeros(len(self._listed), np.bool_)
        verdicts[pairs] = True
        distinct = verdicts.nonzero()[0].tolist()
        verdicts[distinct] = [met(self._listed[pair][1]) for pair in distinct]
        found[sets - first] = verdicts.take(pairs)
        return found
