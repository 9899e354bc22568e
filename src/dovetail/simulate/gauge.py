"""Measures a fleet during a replay: devices in use, and devices that typical tasks cannot use.

Devices are what typical tasks ask for in groups of their own; the largest of a class counts 1000.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.request import Request
from dovetail.engine.rank.demand import demand_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import device_units, lay_out
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.simulate.errors import BadPlan


class Gauge:
    def __init__(self, snapshot: Snapshot, typical: Typical) -> None:
        self._snapshot, self._demand = snapshot, demand_of(snapshot, typical)
        trees = snapshot.tree_version.size
        self._versions: Numbers = np.zeros(trees, np.int64)
        self._lost: Numbers = np.zeros(trees, np.int64)
        self.capacity = sum(map(self._capacity, self._demand.measured))
        if not self.capacity:
            raise BadPlan("the fleet has none of the devices that the tasks ask for")

    def _capacity(self, name: str) -> int:
        inventories = self._snapshot.inventories_of(name)
        assert inventories
        return int(device_units(inventories.capacity.values, self._demand.whole[name]).sum())

    def units(self, request: Request) -> int:
        """What a request takes, in thousandths of devices."""
        return sum(
            device_units(group.resources[name], self._demand.whole[name])
            for group in request.groups
            for name in self._demand.measured
            if name in group.resources
        )

    def share(self, units: int) -> float:
        """In percent of all devices."""
        return 100 * units / self.capacity

    def fragmented(self) -> float:
        """What typical tasks, on average, cannot use of the free devices; in percent of all."""
        versions = self._snapshot.tree_version.values
        stale = np.flatnonzero(self._versions != versions).astype(np.int32)
        if len(stale):
            now = lay_out(self._snapshot, stale, self._demand.classes, self._demand.whole)
            self._lost[stale] = self._demand.units_lost(now)
            self._versions[stale] = versions[stale]
        return self.share(int(self._lost.sum())) / max(self._demand.weight, 1)
