"""Measures a fleet during a replay: devices in use, and devices that typical tasks cannot use.

Devices are what typical tasks ask for in groups of their own; the largest of a class counts 1000.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.request import Request
from dovetail.engine.columns import Rows
from dovetail.engine.rank.demand import DEVICE, Demand
from dovetail.engine.rank.fragmentation import largest
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.trees import lay_out
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.simulate.errors import BadPlan


class Gauge:
    def __init__(self, snapshot: Snapshot, typical: Typical) -> None:
        self._snapshot = snapshot
        self._demand = Demand(snapshot, typical)
        self._losses = Losses(self._demand)
        self._trees: Rows = np.arange(snapshot.tree_start.size, dtype=np.int32)
        self._whole = {name: largest(snapshot, name) for name in self._demand.measured}
        self.capacity = sum(map(self._capacity, self._whole))
        if not self.capacity:
            raise BadPlan("the fleet has none of the devices that the tasks ask for")

    def _capacity(self, name: str) -> int:
        stock = self._snapshot.stock(name)
        assert stock
        return int(stock.capacity.values.sum()) * DEVICE // self._whole[name]

    def units(self, request: Request) -> int:
        """What a request takes, in thousandths of devices."""
        return sum(
            group.resources.get(name, 0) * DEVICE // whole
            for group in request.groups
            for name, whole in self._whole.items()
        )

    def share(self, units: int) -> float:
        """In percent of all devices."""
        return 100 * units / self.capacity

    def fragmented(self) -> float:
        """What typical tasks, on average, cannot use of the free devices; in percent of all."""
        classes = self._demand.classes
        now = lay_out(self._snapshot, self._trees, classes, self._whole)
        lost = self._losses.of(self._snapshot, self._trees, now, self._whole)
        return self.share(int(lost.sum())) / max(self._demand.weight, 1)
