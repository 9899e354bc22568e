"""How much those who name a kind of device ask of it, whatever is in use at the moment."""

from __future__ import annotations

import numpy as np

from dovetail.engine.columns import NEVER
from dovetail.engine.feasible import trait_mask
from dovetail.engine.rank.cache import kept, layout
from dovetail.engine.rank.demand import Demand
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import units
from dovetail.engine.snapshot import Snapshot


class Rarities:
    """By measured class and trait set, in thousandths.

    1000: requests that name such devices ask of them what all requests ask of the fleet's mean.
    """

    def __init__(self, snapshot: Snapshot, demand: Demand) -> None:
        self.of = {name: rarity(snapshot, demand, name) for name in demand.measured}
        self.basis = tuple(each.tobytes() for each in self.of.values())


def rarities(snapshot: Snapshot, demand: Demand) -> Rarities:
    """Found out once for a layout of the fleet."""
    key = ("rarities", demand, layout(snapshot))
    return kept(snapshot, key, lambda: Rarities(snapshot, demand))


def rarity(snapshot: Snapshot, demand: Demand, name: str) -> Numbers:
    held = capacities(snapshot, demand, name)
    everything, asked = int(held.sum()), demand.asked(name)
    found = np.zeros(len(held), np.int64)
    for kind, amount in demand.asking(name):
        mask = trait_mask(snapshot, kind.required, kind.forbidden)
        eligible = int(held[mask].sum())
        if 0 < eligible < everything:
            found[mask] += 1000 * amount * everything // (asked * eligible)
    return found


def capacities(snapshot: Snapshot, demand: Demand, name: str) -> Numbers:
    """By trait set: the capacity of all rows with it, in thousandths of a device."""
    stock = snapshot.stock(name)
    assert stock
    alive = stock.free.values != NEVER
    sets = snapshot.traits.values[stock.rows.values[alive]]
    held = np.maximum(stock.capacity.values[alive], 0)
    found = np.zeros(len(snapshot.trait_sets.members), np.int64)
    np.add.at(found, sets, units(held, demand.whole[name]))
    return found
