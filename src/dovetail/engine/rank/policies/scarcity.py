"""scarcity: as `fragmentation`, and scarce devices and what feeds them are kept for who needs them.

Two things are added to d. First, the drop of the shortage: free devices that the processors and
memory beside them cannot feed, as typical requests mix them. Then, less three quarters of the
rarity of the devices taken: how much requests that name such devices ask of them, so that those
who need not take them leave them alone. Points as in `fragmentation`.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import trait_mask
from dovetail.engine.inventories import NEVER
from dovetail.engine.rank.cache import cache_entry, layout_version
from dovetail.engine.rank.demand import TypicalDemand, demand_of
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase, PolicyScores
from dovetail.engine.rank.shortage import CompanionShortage
from dovetail.engine.rank.trees import Trees, device_units
from dovetail.engine.snapshot import Snapshot

WEIGHT = 3, 4
"""What rarity counts, as a fraction."""


class Scarcity:
    is_even = False

    def __init__(self, case: PolicyCase) -> None:
        self._case = case
        self._demand = demand = demand_of(case.snapshot, case.typical)
        self._rarities = rarities_of(case.snapshot, demand)
        self._losses: Losses = cache_entry(case.snapshot, ("scarcity", demand), self._make_losses)

    def _make_losses(self) -> Losses:
        demand = self._demand
        shortage = CompanionShortage(demand)

        def measure(trees: Trees) -> Numbers:
            return demand.units_lost(trees) + shortage.of(trees)

        return Losses(measure, demand.whole, demand.weight)

    @property
    def basis(self) -> Hashable:
        return self._demand, self._rarities.basis

    def score(self, lines: Block) -> PolicyScores:
        drops = self._losses.drops(self._case, self._demand.classes, lines) - self._rarity(lines)
        return PolicyScores(self._losses.points(drops), drops)

    def _rarity(self, lines: Block) -> Numbers:
        """What each candidate takes of rare devices, times the weight of all requests."""
        found = np.zeros(len(lines), np.int64)
        above, below = WEIGHT
        for at, slot in enumerate(self._case.slots):
            for name in self._demand.measured:
                if name in slot.resources:
                    taken = device_units(slot.resources[name], self._demand.whole[name])
                    traits = self._case.snapshot.traits.values[lines[:, at]]
                    cost = self._demand.weight * taken * above * self._rarities.of[name][traits]
                    found += cost // (below * 1000)
        return found


class Rarities:
    """How much those who name a kind of device ask of it, whatever is in use at the moment.

    By measured class and trait set, in thousandths.

    1000: requests that name such devices ask of them what all requests ask of the fleet's mean.
    """

    def __init__(self, snapshot: Snapshot, demand: TypicalDemand) -> None:
        self.of = {name: _rarity_of(snapshot, demand, name) for name in demand.measured}
        self.basis = tuple(each.tobytes() for each in self.of.values())


def rarities_of(snapshot: Snapshot, demand: TypicalDemand) -> Rarities:
    """Found out once for a layout of the fleet."""
    key = ("rarities", demand, layout_version(snapshot))
    return cache_entry(snapshot, key, lambda: Rarities(snapshot, demand))


def _rarity_of(snapshot: Snapshot, demand: TypicalDemand, name: str) -> Numbers:
    held = _capacities_of(snapshot, demand, name)
    everything, asked = int(held.sum()), demand.units_requested(name)
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
