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
from dovetail.engine.rank.cache import cache_entry
from dovetail.engine.rank.demand import demand_of
from dovetail.engine.rank.losses import Losses
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase, PolicyScores
from dovetail.engine.rank.pressure.held import PRICE, held_demand_of
from dovetail.engine.rank.room import room_of
from dovetail.engine.rank.shortage import CompanionShortage
from dovetail.engine.rank.trees import Trees

ROOM = 2
SHORTAGE = 5
WORTH = 8
"""What they count beside fragmentation."""

PARTS = 4
"""Of so many units of the sum one counts for the points."""


class Scarcity:
    is_even = False

    def __init__(self, case: PolicyCase) -> None:
        self._case = case
        self._demand = demand_of(case.snapshot, case.typical)
        self._held = held = held_demand_of(case.snapshot, case.typical, self._demand)
        watch = case.watch
        self._prices = watch.prices(case.snapshot, held) if watch else held.prices(case.snapshot)
        self._classes = sorted({*self._demand.classes, *held.requests.classes})
        self._losses: Losses = cache_entry(
            case.snapshot, ("scarcity", self.basis), self._make_losses
        )

    def _make_losses(self) -> Losses:
        demand, held, prices = self._demand, self._held.requests, self._prices
        shortage = CompanionShortage(demand)
        room = room_of(self._case.snapshot, self._case.typical, demand)
        kept = WORTH * demand.weight

        def measure(trees: Trees) -> Numbers:
            lost = demand.units_lost(trees) + ROOM * room.lost(trees)
            lost += SHORTAGE * shortage.of(trees)
            found: Numbers = lost - kept * held.worth(trees, prices) // PRICE
            return found

        return Losses(measure, demand.whole, PARTS * demand.weight)

    @property
    def basis(self) -> Hashable:
        return self._demand, self._prices.tobytes()

    def score(self, lines: Block) -> PolicyScores:
        drops = self._losses.drops(self._case, self._classes, lines)
        return PolicyScores(self._losses.points(drops), drops)
