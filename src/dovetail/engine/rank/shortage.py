"""Free devices that what goes with them in a tree cannot feed.

Companions of a device class are the other classes that typical requests for it also take. With the
mean mix of typical requests, what is free of a companion feeds so many devices. Mixes differ, so
it is looked at half, once, one and a half times and twice as hungry, and the mean is taken.
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.rank.demand import Demand
from dovetail.engine.rank.policy import Numbers
from dovetail.engine.rank.trees import Trees

HALVES = (1, 2, 3, 4)
"""How hungry: in halves of the mean."""

FINE = 20
"""Bits behind the point of how much one unit of a companion feeds."""


class Shortage:
    def __init__(self, demand: Demand) -> None:
        self._weight = demand.weight
        self._rates = {
            name: {
                companion: np.array(
                    [[(demand.asked(name) << FINE + 1) // (amount * halves)] for halves in HALVES]
                )
                for companion, amount in demand.companions(name).items()
            }
            for name in demand.measured
        }

    def of(self, trees: Trees) -> Numbers:
        """Of each tree, times the weight of all requests."""
        found = np.zeros(len(trees), np.int64)
        for name, rates in self._rates.items():
            if rates:
                devices = trees.units(name).sum(axis=0)
                found += self._weight * self._short(trees, devices, rates) // len(HALVES)
        return found

    def _short(self, trees: Trees, devices: Numbers, rates: dict[str, Numbers]) -> Numbers:
        """Summed over the mixes."""
        fed = []
        for companion, rate in rates.items():
            free = trees.free[companion].sum(axis=0)
            # More than feeds any tree makes no difference, and the product has to fit 64 bits.
            fed.append(np.minimum(free, 2**62 // np.maximum(rate, 1)) * rate >> FINE)
        found: Numbers = np.maximum(devices - np.minimum.reduce(fed), 0).sum(axis=0)
        return found
