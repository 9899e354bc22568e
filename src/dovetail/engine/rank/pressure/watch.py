"""Watch of the pressure: prices as last measured, until the fleet has moved on.

The service and the simulator have one each; without one, prices are measured for every request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.pressure.held import HeldDemand
from dovetail.engine.rank.totals import totals_in_steps
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

MOVED = 100
"""Pressure is measured again when a part in so many of the free devices came or went."""


class PressureWatch:
    """Prices as last measured: ranking keeps more from request to request while they stay."""

    def __init__(self) -> None:
        self._held: HeldDemand | None = None
        self._free: list[int] = []
        self._prices: Numbers = np.zeros(0, np.int64)

    def prices(self, snapshot: Snapshot, held: HeldDemand) -> Work[Numbers]:
        free = []
        for name in held.requests.measured:
            totals = yield from totals_in_steps(snapshot, name)
            # Where more than all is in use nothing is free, and no less than that.
            free.append(int(np.maximum(totals.free, 0).sum()))
        if held is self._held and not has_moved(self._free, free):
            return self._prices
        prices = yield from held.prices(snapshot)
        self._held, self._free, self._prices = held, free, prices
        return prices


def has_moved(before: Sequence[int], after: Sequence[int]) -> bool:
    return any(MOVED * abs(b - a) > b for b, a in zip(before, after, strict=True))
