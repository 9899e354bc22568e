"""Pressure on the places of a fleet: what each request seen would pay that they be kept for it.

The policy `scarcity` holds devices back by it; `PressureWatch` keeps it for the service and the
simulator.

Suppose the free devices will be asked for as devices were so far, until all are taken. Then the
demand for the places of a request is that of all requests that are as hard to place (`hardness`),
and its supply the free units that it could use. Their ratio is the pressure on it; 1 is balance.
The price is the square of the pressure, at most 4, times the share of demand that is easier on
devices: who can go anywhere has to keep nothing for himself.
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.rank.cache import cache_entry
from dovetail.engine.rank.demand import TypicalDemand, needs_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.pressure.hardness import Hardness
from dovetail.engine.rank.trees import lay_out
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot

MOST_HELD = 512
"""Requests that devices are kept for, those that ask for most."""

PRICE = 1000
"""A price of one."""

MOST_PRESSURE = 2 * PRICE

TREES_AT_ONCE = 1024


class HeldDemand:
    """The requests that devices are kept for, and how hard they are to place."""

    def __init__(self, snapshot: Snapshot, typical: Typical, whole: dict[str, int]) -> None:
        everyone = TypicalDemand(snapshot, Typical(typical.requests + typical.rare), whole)
        asked = everyone.units_by_request()
        seen = typical.requests + typical.rare
        order = sorted((at for at in range(len(seen)) if asked[at]), key=lambda at: -asked[at])
        chosen = tuple(seen[at] for at in order[:MOST_HELD])
        self.requests = TypicalDemand(snapshot, Typical(chosen), whole)
        units = np.array(self.requests.units_by_request(), np.int64)
        hardness = Hardness(snapshot, [needs_of(request) for request, _ in chosen])
        self._asked = int(units.sum())
        self._sizes = [asked[at] // seen[at][1] for at in order[:MOST_HELD]]
        self._competing = [int(units[hardness.at_least(at)].sum()) for at in range(len(chosen))]

    def prices(self, snapshot: Snapshot) -> Numbers:
        """By request, in thousandths, as the fleet stands."""
        usable, free = self._supply(snapshot)
        return np.array(
            [self._price(at, int(supply), free) for at, supply in enumerate(usable)], np.int64
        )

    def _price(self, request: int, supply: int, free: int) -> int:
        pressure = MOST_PRESSURE
        if supply:
            demand = self._competing[request] * free // self._asked + self._sizes[request]
            pressure = min(PRICE * demand // supply, MOST_PRESSURE)
        easier = self._asked - self._competing[request]
        return pressure**2 * easier // (PRICE * self._asked)

    def _supply(self, snapshot: Snapshot) -> tuple[Numbers, int]:
        """By request the free units that it could use, and all there are."""
        requests = self.requests
        usable: Numbers = np.zeros(len(self._competing), np.int64)
        free = 0
        alive = np.flatnonzero(snapshot.tree_size.values).astype(np.int32)
        for low in range(0, len(alive), TREES_AT_ONCE):
            some = alive[low : low + TREES_AT_ONCE]
            trees = lay_out(snapshot, some, requests.classes, requests.whole)
            kinds, which = trees.distinct()
            counts = np.bincount(which)
            usable += requests.units_usable(kinds) @ counts
            for name in requests.measured:
                free += int(np.add.reduce(kinds.units(name)) @ counts)
        return usable, free


def held_demand_of(snapshot: Snapshot, typical: Typical, demand: TypicalDemand) -> HeldDemand:
    """Made once for a demand."""
    key = ("held", demand)
    return cache_entry(snapshot, key, lambda: HeldDemand(snapshot, typical, demand.whole))
