"""Order among equal candidates: who asks at the same time need not all take the same one.

The engine answers alike wherever it is asked alike. That is what explanations and tests want, and
what makes many clients, or several replicas, run for one place. An `Order` changes what comes first
among candidates of equal score, and nothing else; without a ranking all are equal. A `Dealer` is
for those who ask in two calls (GET, then PUT), `Shifted` for claims of a replica that met another.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank import RankedSearch

Places = NDArray[np.intp]


class Order(Protocol):
    """Which of several equals come first."""

    def of(self, count: int) -> Places:
        """The numbers from 0 up to `count`, in order."""
        ...

    def of_trees(self, trees: RowNumbers) -> RowNumbers:
        """The trees in the order in which a search turns to them."""
        ...


class Dealer:
    """Deals the fleet out: each who asks is offered the trees behind those that were dealt before.

    So those who ask at once are offered different ones until all were dealt, and a claim fails only
    if somebody of another process was offered the same. Where to begin, and the order of what is
    dealt, are random.
    """

    def __init__(self, seed: int | None = None) -> None:
        """The same seed deals alike."""
        self._random = np.random.default_rng(seed)
        self._next = int(self._random.integers(2**32))

    def deal(self, limit: int | None) -> Dealt:
        """For a request with this limit; without one, it is offered everything."""
        dealt = Dealt(self._random, self._next, limit)
        self._next += limit or 0
        return dealt


class Dealt:
    """What one who asks is offered, in any order."""

    def __init__(self, random: np.random.Generator, start: int, limit: int | None) -> None:
        self._random, self._start, self._limit = random, start, limit

    def of(self, count: int) -> Places:
        return self._random.permutation(count)

    def of_trees(self, trees: RowNumbers) -> RowNumbers:
        """From the first that is dealt on, around; candidates are one of each tree at first."""
        if not len(trees):
            return trees
        start = self._start % len(trees)
        found = np.concatenate((trees[start:], trees[:start]))
        dealt = found[: self._limit]
        found[: len(dealt)] = dealt[self.of(len(dealt))]
        return found


class Shifted:
    """In turn, from another one than the first; the first follows the last."""

    def __init__(self, start: float) -> None:
        """`start` is from 0 up to 1: where to begin, as a part of all."""
        self._start = start

    def of(self, count: int) -> Places:
        return np.roll(np.arange(count), -int(self._start * count))

    def of_trees(self, trees: RowNumbers) -> RowNumbers:
        return np.roll(trees, -int(self._start * len(trees)))


def among_equals(searching: Search, rows: Block, order: Order) -> Block:
    """What was found, best first as before, equals in that order; scores go with their rows."""
    if not isinstance(searching, RankedSearch):
        return rows[order.of(len(rows))]
    if not len(rows):
        return rows
    totals = np.array([scores["total"] for scores in searching.scores])
    edges = [0, *(np.flatnonzero(totals[1:] != totals[:-1]) + 1).tolist(), len(totals)]
    places = np.concatenate([low + order.of(high - low) for low, high in pairwise(edges)])
    searching.scores = [searching.scores[at] for at in places.tolist()]
    found: Block = rows[places]
    return found
