"""Shortage of companions: free devices that what goes with them in a tree cannot feed.

Companions of a device class are the other classes that typical requests for it also take. With the
mean mix of typical requests, what is free of a companion feeds so many devices. Mixes differ, so
it is looked at half, once, one and a half times and twice as hungry, and the mean is taken.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from dovetail.engine.rank.demand import TypicalDemand
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import Trees

HALVES = (1, 2, 3, 4)
"""How hungry: in halves of the mean."""

MEAN_MIX = HALVES.index(2)
"""Where the mean itself stands among them."""

FINE = 20
"""Bits behind the point of how much one unit of a companion feeds."""


Rates = tuple[Numbers, Numbers]
"""What a unit feeds, by how hungry, and the most that is looked at."""


class CompanionShortage:
    def __init__(self, demand: TypicalDemand) -> None:
        self._weight = demand.weight
        self._rates = companion_rates(demand)

    def of(self, trees: Trees) -> Numbers:
        """Of each tree, times the weight of all requests."""
        found = np.zeros(len(trees), np.int64)
        for name, rates in self._rates.items():
            if rates:
                devices = np.add.reduce(trees.units(name))
                found += self._weight * self._short(trees, devices, rates) // len(HALVES)
        return found

    def _short(self, trees: Trees, devices: Numbers, rates: dict[str, Rates]) -> Numbers:
        """Summed over the mixes."""
        fed = [
            np.minimum(np.add.reduce(trees.free[companion]), most) * rate >> FINE
            for companion, (rate, most) in rates.items()
        ]
        short = np.maximum(devices - reduce(np.minimum, fed), 0)
        found: Numbers = np.add.reduce(short)
        return found


def companion_rates(demand: TypicalDemand) -> dict[str, dict[str, Rates]]:
    """By measured class and companion."""
    return {
        name: {
            companion: rates(demand.units_requested[name], amount)
            for companion, amount in demand.companions(name).items()
        }
        for name in demand.measured
    }


def rates(asked: int, amount: int) -> Rates:
    """Of a companion of which so much goes with the devices asked for."""
    rate = np.array([[(asked << FINE + 1) // (amount * halves)] for halves in HALVES])
    # More than feeds any tree makes no difference, and the product has to fit 64 bits.
    return rate, 2**62 // np.maximum(rate, 1)
