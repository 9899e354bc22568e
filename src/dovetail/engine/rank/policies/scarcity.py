"""scarcity: as `fragmentation`, and what is scarce is kept for who needs it, as pressure rises.

Three things are added to d. First, the drop of the room lost to requests without devices (`room`):
they would rather leave whole what others of them need. Then that of the shortage: free devices that
the processors and memory beside them cannot feed, as typical requests mix them. Then, less the drop
of worth: each free device unit of a tree is worth the highest price among the requests that could
use it there (`pressure`), so that those who can go elsewhere leave alone what others will be short
of: devices with the traits that they name, and hosts with many devices free. Points as in
`fragmentation`, for a quarter of the sum: it has more terms, and is to be as coarse.
"""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import entry_in_steps
from dovetail.engine.rank.demand import TypicalDemand, demand_in_steps
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase, PolicyScores
from dovetail.engine.rank.pressure.held import PRICE, HeldDemand, held_demand_in_steps
from dovetail.engine.rank.room import room_in_steps
from dovetail.engine.rank.shortage import CompanionShortage
from dovetail.engine.rank.trees import Trees
from dovetail.engine.work import Work

ROOM = 2
SHORTAGE = 5
WORTH = 8
"""What they count beside fragmentation."""

PARTS = 4
"""Of so many units of the sum one counts for the points."""


class Scarcity:
    is_even = False

    def __init__(self, case: PolicyCase, basis: Hashable, classes: list[str], losses: Losses):
        self._case, self.basis, self._classes, self._losses = case, basis, classes, losses

    @classmethod
    def in_steps(cls, case: PolicyCase) -> Work[Scarcity]:
        snapshot, watch = case.snapshot, case.watch
        demand = yield from demand_in_steps(snapshot, case.typical)
        held = yield from held_demand_in_steps(snapshot, case.typical, demand)
        measuring = watch.prices(snapshot, held) if watch else held.prices(snapshot)
        prices = yield from measuring
        basis = demand, prices.tobytes()
        classes = sorted({*demand.classes, *held.requests.classes})
        losses = yield from entry_in_steps(
            snapshot, ("scarcity", basis), lambda: losses_in_steps(case, demand, held, prices)
        )
        return cls(case, basis, classes, losses)

    def score(self, lines: Block) -> Work[PolicyScores]:
        drops = yield from self._losses.drops(self._case, self._classes, lines)
        return PolicyScores(self._losses.points(drops), drops)


def losses_in_steps(
    case: PolicyCase, demand: TypicalDemand, held_demand: HeldDemand, prices: Numbers
) -> Work[Losses]:
    shortage = CompanionShortage(demand)
    room = yield from room_in_steps(case.snapshot, case.typical, demand)
    held, kept = held_demand.requests, WORTH * demand.weight

    def measure(trees: Trees) -> Numbers:
        lost = demand.units_lost(trees) + ROOM * room.lost(trees)
        lost += SHORTAGE * shortage.of(trees)
        found: Numbers = lost - kept * held.worth(trees, prices) // PRICE
        return found

    def cells(rows: int) -> int:
        return demand.cells(rows) + room.cells(rows) + held.cells(rows)

    return Losses(measure, cells, demand.whole, PARTS * demand.weight)
