"""How much those who name a kind of device ask of it, whatever is in use at the moment."""

from __future__ import annotations

import numpy as np

from dovetail.engine.feasible import trait_mask
from dovetail.engine.inventories import NEVER
from dovetail.engine.rank.cache import cached, layout_version
from dovetail.engine.rank.demand import TypicalDemand
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import device_units
from dovetail.engine.snapshot import Snapshot


class Rarities:
    """By measured class and trait set, in thousandths.

    1000: requests that name such devices ask of them what all requests ask of the fleet's mean.
    """

    def __init__(self, snapshot: Snapshot, demand: TypicalDemand) -> None:
        self.of = {name: _rarity_of(snapshot, demand, name) for name in demand.measured}
        self.basis = tuple(each.tobytes() for each in self.of.values())


def rarities_of(snapshot: Snapshot, demand: TypicalDemand) -> Rarities:
    """Found out once for a layout of the fleet."""
    key = ("rarities", demand, layout_version(snapshot))
    return cached(snapshot, key, lambda: Rarities(snapshot, demand))


def _rarity_of(snapshot: Snapshot, demand: TypicalDemand, name: str) -> Numbers:
    held = _capacities_of(snapshot, demand, name)
    everything, asked = int(held.sum()), demand.requested(name)
    found = np.zeros(len(held), np.int64)
    for kind, amount in demand.requesting_kinds(name):
        mask = trait_mask(snapshot, kind.required, kind.forbidden)
        eligible = int(held[mask].sum())
        if 0 < eligible < everything:
            found[mask] += 1000 * amount * everything // (asked * eligible)
    return found


def _capacities_of(snapshot: Snapshot, demand: TypicalDemand, name: str) -> Numbers:
    """By trait set: the capacity of all rows with it, in thousandths of a device."""
    inventories = snapshot.inventories_of(name)
    assert inventories
    alive = inventories.free.values != NEVER
    sets = snapshot.traits.values[inventories.rows.values[alive]]
    held = np.maximum(inventories.capacity.values[alive], 0)
    found = np.zeros(len(snapshot.trait_sets), np.int64)
    np.add.at(found, sets, device_units(held, demand.whole[name]))
    return found
