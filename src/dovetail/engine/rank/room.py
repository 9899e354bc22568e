"""Room for requests without devices: free processors and memory that such requests cannot use.

The policy `scarcity` counts it as fragmentation of what is not a device. Each typical request that
takes no device loses what is free in a tree on which it does not run. It is counted in the devices
that could be fed by it at the mean mix (`shortage`), so that it compares with lost devices.
"""

from __future__ import annotations

from collections.abc import Container
from functools import reduce

import numpy as np

from dovetail.core.request import Request
from dovetail.engine.rank.cache import entry_in_steps
from dovetail.engine.rank.demand import TypicalDemand
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.shortage import FINE, MEAN_MIX, companion_rates
from dovetail.engine.rank.trees import Trees
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

MOST_FED = 2**32
"""Device units; what would feed more in one tree makes no difference, and sums fit 64 bits."""


class CompanionRoom:
    def __init__(self, demand: TypicalDemand, deviceless: TypicalDemand) -> None:
        """`deviceless`: those of the typical requests that take no measured class."""
        self._deviceless = deviceless
        self._rates = [
            {companion: (rate[MEAN_MIX], most[MEAN_MIX]) for companion, (rate, most) in of.items()}
            for of in companion_rates(demand).values()
            if of
        ]

    def cells(self, rows: int) -> int:
        """How much is looked at to measure a tree of so many rows."""
        return self._deviceless.cells(rows)

    def lost(self, trees: Trees) -> Numbers:
        """Of each tree, times the weights of the requests that lose it."""
        found: Numbers = np.zeros(len(trees), np.int64)
        if self._rates and self._deviceless.weight:
            unserved = self._deviceless.weight_not_running(trees)
            for rates in self._rates:
                fed = [
                    np.minimum(np.add.reduce(trees.free[companion]), most) * rate >> FINE
                    for companion, (rate, most) in rates.items()
                ]
                found += unserved * np.minimum(reduce(np.minimum, fed), MOST_FED)
        return found


def room_in_steps(
    snapshot: Snapshot, typical: Typical, demand: TypicalDemand
) -> Work[CompanionRoom]:
    """Made once for a demand."""
    key = "room", demand
    return entry_in_steps(snapshot, key, lambda: _make_room(snapshot, typical, demand))


def _make_room(snapshot: Snapshot, typical: Typical, demand: TypicalDemand) -> Work[CompanionRoom]:
    yield
    without = tuple(each for each in typical.requests if not takes_any(each[0], demand.whole))
    return CompanionRoom(demand, TypicalDemand(snapshot, Typical(without), demand.whole))


def takes_any(request: Request, classes: Container[str]) -> bool:
    return any(name in classes for group in request.groups for name in group.resources)
