"""What a policy is: points for candidates, from what it can see of a request and the fleet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.totals import TreeTotals, totals_in_steps
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

if TYPE_CHECKING:
    from dovetail.engine.rank.pressure.watch import PressureWatch

Numbers = NDArray[np.int64]

MILLION = 1_000_000
"""Shares are whole millionths, so that equal things compare equal whatever was computed before."""

POINT = MILLION // 100
"""Points go from 0 to 100."""


class PolicyScores(NamedTuple):
    points: Numbers
    nuance: Numbers
    """What decides between candidates of one tree that have the same points."""


class RankingPolicy(Protocol):
    is_even: bool
    """Candidates of a tree have the same points, unless rows are shared between trees."""

    @property
    def basis(self) -> Hashable:
        """What points depend on beside the request and the tree: kept points are bound to it."""
        ...

    def score(self, lines: Block) -> Work[PolicyScores]:
        """Of each candidate; more is better."""
        ...


class PolicyCase:
    """A request as policies see it: the slots to fill, in this snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        slots: Sequence[Slot],
        typical: Typical,
        watch: PressureWatch | None = None,
    ) -> None:
        self.snapshot, self.slots, self.typical = snapshot, slots, typical
        self.watch = watch
        self.requested: dict[str, int] = {}
        """By class, what all slots want together."""
        self.slots_of_class: dict[str, list[int]] = {}
        """By class, the slots that want some of it."""
        for at, slot in enumerate(slots):
            for name, amount in slot.resources.items():
                self.requested[name] = self.requested.get(name, 0) + amount
                self.slots_of_class.setdefault(name, []).append(at)
        self.totals: dict[str, TreeTotals] = {}
        """By class, once they were added up."""

    def add_up(self) -> Work[None]:
        """Find the totals of what is asked for; policies that look at them ask for it first."""
        for name in self.requested:
            if name not in self.totals:
                self.totals[name] = yield from totals_in_steps(self.snapshot, name)

    def free_and_capacity(self, name: str, rows: RowNumbers) -> tuple[Numbers, Numbers]:
        """What rows that have some of the class have free, and their capacities."""
        inventories = self.snapshot.inventories_of(name)
        assert inventories
        at = inventories.rows.values.searchsorted(rows)
        return inventories.free.values[at], inventories.capacity.values[at]


def share(part: Numbers, whole: Numbers | int) -> Numbers:
    """In millionths, between none and all."""
    # Float division is exact enough to be the same everywhere; the products would pass 64 bits.
    parts = part / np.maximum(whole, 1) * MILLION
    found: Numbers = np.clip(parts, 0, MILLION).astype(np.int64)
    return found


def mean(shares: Sequence[Numbers]) -> Numbers:
    found: Numbers = np.add.reduce(shares) // len(shares)
    return found


def by_class(case: PolicyCase, lines: Block, left: Callable[[str, RowNumbers], Numbers]) -> Numbers:
    """The mean over the classes asked for of the share that trees have left, in millionths."""
    trees = case.snapshot.tree.values[lines]
    return mean(
        [
            mean([left(name, trees[:, at]) for at in slots])
            for name, slots in case.slots_of_class.items()
        ]
    )
