"""Pressure on the places of a fleet: what each request seen would pay that they be kept for it.

The policy `scarcity` holds devices back by it; `PressureWatch` keeps it for the service and the
simulator.

Suppose the free devices will be asked for as devices were so far, until all are taken. Then the
demand for the places of a request is that of all requests that are as hard to place (`hardness`),
and one more of its own; its supply is the free units that it could use. Their ratio is the pressure
on it; 1 is balance, and more than 2 counts as 2. The price is its power of three halves times the
share of demand that is easier to place: for who can go anywhere nothing need be kept. Who takes
more processors and memory for a device than others do pays as much less: what is kept for him feeds
fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from math import isqrt

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.request import Request
from dovetail.engine.rank.cache import entry_in_steps
from dovetail.engine.rank.demand import TypicalDemand
from dovetail.engine.rank.needs import needs_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.pressure.hardness import harder_requests
from dovetail.engine.rank.trees import device_units, lay_out, slices_of_trees
from dovetail.engine.rank.typical import Chosen, Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import kinds_in_steps, samples_of
from dovetail.engine.work import Work

MOST_HELD = 512
"""Requests that devices are kept for, those that ask for most."""

PRICE = 1000
"""A price of one."""

MOST_PRESSURE = 2 * PRICE

GROUPS_PER_STEP = 4096
"""Of requests whose devices are counted before others get a turn."""


class HeldDemand:
    """The requests that devices are kept for, and how hard they are to place."""

    def __init__(
        self,
        requests: TypicalDemand,
        chosen: Sequence[tuple[Request, int]],
        sizes: list[int],
        harder: Sequence[Mask],
    ) -> None:
        """`sizes`: the device units that each takes; `harder`: which are as hard to place."""
        self.requests, self._sizes = requests, sizes
        units = np.array([count for _, count in chosen], np.int64) * sizes
        self._asked = int(units.sum())
        self._hunger = hunger_of(chosen, sizes, devices=requests.whole)
        self._competing = [int(units[mask].sum()) for mask in harder]

    @classmethod
    def in_steps(
        cls, snapshot: Snapshot, typical: Typical, whole: dict[str, int]
    ) -> Work[HeldDemand]:
        chosen = yield from most_demanding(typical, whole)
        sizes = [size_of(request, whole) for request, _ in chosen]
        yield
        requests = TypicalDemand(snapshot, Typical(chosen), whole)
        yield
        harder = yield from harder_requests(snapshot, [needs_of(request) for request, _ in chosen])
        return cls(requests, chosen, sizes, harder)

    def prices(self, snapshot: Snapshot) -> Work[Numbers]:
        """By request, in thousandths, as the fleet stands."""
        usable, free = yield from self._supply(snapshot)
        return np.array(
            [self._price(at, int(supply), free) for at, supply in enumerate(usable)], np.int64
        )

    def _price(self, request: int, supply: int, free: int) -> int:
        pressure = MOST_PRESSURE
        if supply:
            demand = self._competing[request] * free // self._asked + self._sizes[request]
            pressure = min(PRICE * demand // supply, MOST_PRESSURE)
        easier = self._asked - self._competing[request]
        price = isqrt(pressure**3 // PRICE) * easier // self._asked
        return price * PRICE // self._hunger[request]

    def _supply(self, snapshot: Snapshot) -> Work[tuple[Numbers, int]]:
        """By request the free units that it could use, and all there are."""
        requests = self.requests
        usable: Numbers = np.zeros(len(self._competing), np.int64)
        free = 0
        alive = np.flatnonzero(snapshot.tree_size.values).astype(np.int32)
        firsts, alike = samples_of((yield from kinds_in_steps(snapshot)).take(alive))
        samples, times = alive.take(firsts), np.bincount(alike)
        for some in slices_of_trees(snapshot, samples, requests.cells):
            trees = lay_out(snapshot, samples[some], requests.classes, requests.whole)
            kinds, which = trees.distinct()
            counts = np.zeros(len(kinds), np.int64)
            np.add.at(counts, which, times[some])
            usable += requests.units_usable(kinds) @ counts
            for name in requests.measured:
                free += int(np.add.reduce(kinds.units(name)) @ counts)
            yield
        return usable, free


def most_demanding(
    typical: Typical, whole: Mapping[str, int]
) -> Work[tuple[tuple[Request, int], ...]]:
    """The requests that ask for most devices in all, those that ask for none left out."""
    seen, groups = [], 0
    for request, count in (*typical.requests, *typical.rare):
        size = size_of(request, whole)
        if size:
            seen.append((count * size, request, count))
        groups += len(request.groups)
        if groups > GROUPS_PER_STEP:
            groups = 0
            yield
    chosen = Chosen(MOST_HELD)
    for _, request, count in sorted(seen, key=lambda each: -each[0]):
        chosen.add(request, count)
    return tuple(chosen.requests)


def size_of(request: Request, whole: Mapping[str, int]) -> int:
    """The device units that a request takes."""
    return sum(
        device_units(amount, whole[name])
        for group in request.groups
        for name, amount in group.resources.items()
        if name in whole
    )


def hunger_of(
    requests: Sequence[tuple[Request, int]], sizes: Sequence[int], devices: Container[str]
) -> list[int]:
    """What each takes of other classes per device unit, in thousandths of the mean; 1000 at least.

    Of several classes that of which it takes most.
    """
    taken = [companions_of(request, devices) for request, _ in requests]
    asked = sum(count * size for (_, count), size in zip(requests, sizes, strict=True))
    totals: Counter[str] = Counter()
    for (_, count), amounts in zip(requests, taken, strict=True):
        for name, amount in amounts.items():
            totals[name] += count * amount
    return [
        max([PRICE, *(PRICE * amounts[name] * asked // (totals[name] * size) for name in amounts)])
        for amounts, size in zip(taken, sizes, strict=True)
    ]


def companions_of(request: Request, devices: Container[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in request.groups:
        for name, amount in group.resources.items():
            if name not in devices:
                found[name] += amount
    return found


def held_demand_in_steps(
    snapshot: Snapshot, typical: Typical, demand: TypicalDemand
) -> Work[HeldDemand]:
    """Made once for a demand."""
    key = "held", demand
    return entry_in_steps(
        snapshot, key, lambda: HeldDemand.in_steps(snapshot, typical, demand.whole)
    )
