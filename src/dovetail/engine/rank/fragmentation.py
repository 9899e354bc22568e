"""fragmentation: the least growth of what typical requests could not use (FGD).

The fragmentation of a tree for a request is the free device units that it could not use there:
all of them if it does not run there, else those on providers with too little left; the expected
one weighs typical requests by how often they come. A whole device counts 1000. With d for the
expected fragmentation before less that after, points are floor(100 / (1 + exp(-d / 1000))).
Points are coarse on purpose: of trees that are nearly equal the first is filled up. The measure is
that of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from dovetail.engine.columns import NEVER
from dovetail.engine.rank.alike import distinct
from dovetail.engine.rank.demand import Demand
from dovetail.engine.rank.homes import homes
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.notes import kept
from dovetail.engine.rank.policy import Case, Numbers
from dovetail.engine.rank.trees import lay_out
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.turns import Block


class Fragmentation:
    even = False

    def __init__(self, case: Case) -> None:
        self._case = case
        snapshot, typical = case.snapshot, case.typical
        key = ("losses", typical, snapshot.names_version, len(snapshot.trait_sets.members))
        self._losses: Losses = kept(snapshot, key, lambda: Losses(Demand(snapshot, typical)))
        self._demand = self._losses.demand
        self._whole = {name: largest(snapshot, name) for name in self._demand.measured}

    @property
    def basis(self) -> Hashable:
        return self._case.typical, tuple(self._whole.values())

    def points(self, lines: Block) -> Numbers:
        return np.searchsorted(self._losses.steps, self._drops(lines), side="right")

    def nuance(self, lines: Block) -> Numbers:
        return np.zeros(len(lines), np.int64)

    def _drops(self, lines: Block) -> Numbers:
        """By how much the expected fragmentation drops, times the weight of all requests."""
        snapshot, slots = self._case.snapshot, self._case.slots
        samples, alike = distinct(self._case, lines)
        trees, which = np.unique(homes(snapshot, lines[samples]), return_inverse=True)
        now = lay_out(snapshot, trees, self._demand.classes, self._whole)
        before = self._losses.of(snapshot, trees, now, self._whole)
        after = self._demand.lost(now.after(which, lines[samples], slots))
        found: Numbers = (before[which] - after)[alike]
        return found


def largest(snapshot: Snapshot, name: str) -> int:
    """The capacity of the largest device."""
    stock = snapshot.stock(name)
    assert stock
    alive = stock.free.values != NEVER
    return int(stock.capacity.values.max(where=alive, initial=1))
