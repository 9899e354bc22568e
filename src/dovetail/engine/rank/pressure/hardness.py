"""Partial order of requests: which of them are at least as hard to place as another.

`held` adds up by it who else competes for the places that are left to a request.

A need is at least as hard as another if it asks for as much of each class, of rows that would all
do for the other, and for a row of its own if the other does. A request is, if for each need of the
other it has such a need, as many times. Whatever serves the harder request serves the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask
from dovetail.engine.rank.needs import NeedKind, trait_masks
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

NEEDS_PER_STEP = 64
"""Needs that are each compared with all others in one step."""


class HarderNeeds:
    """Of some needs, those that are as hard as a given one."""

    def __init__(self, snapshot: Snapshot, kinds: Sequence[NeedKind]) -> None:
        self._kinds = kinds
        self._alone = np.array([kind.alone for kind in kinds], np.bool_)
        self._amounts: dict[str, Numbers] = {}
        for at, kind in enumerate(kinds):
            for name, amount in kind.resources:
                if name not in self._amounts:
                    self._amounts[name] = np.zeros(len(kinds), np.int64)
                self._amounts[name][at] = amount
        # Many needs are for rows with the same traits: each set of rows is compared once.
        eligible, self._eligible_of = np.unique(
            np.packbits(np.stack(trait_masks(snapshot, kinds)), axis=1),
            axis=0,
            return_inverse=True,
        )
        self._eligible: NDArray[np.uint8] = eligible
        self._stricter: dict[int, Mask] = {}

    def than(self, need: int) -> Mask:
        """Which needs are at least as hard as this one."""
        found: Mask = self._alone >= self._alone[need]
        for name, amount in self._kinds[need].resources:
            found &= self._amounts[name] >= amount
        found &= self._at_least_as_strict(int(self._eligible_of[need]))[self._eligible_of]
        return found

    def _at_least_as_strict(self, rows: int) -> Mask:
        """Which sets of rows lie within this one."""
        found = self._stricter.get(rows)
        if found is None:
            found = self._stricter[rows] = ~(self._eligible & ~self._eligible[rows]).any(axis=1)
        return found


def harder_requests(snapshot: Snapshot, wanted: Sequence[Counter[NeedKind]]) -> Work[list[Mask]]:
    """For each request, by its needs, which requests are as hard to place."""
    kinds = list(dict.fromkeys(kind for each in wanted for kind in each))
    if not kinds:
        return [np.ones(len(wanted), np.bool_) for _ in wanted]
    harder = HarderNeeds(snapshot, kinds)
    number = {kind: at for at, kind in enumerate(kinds)}
    having = np.array([line for line, each in enumerate(wanted) for _ in each])
    had = np.array([number[kind] for each in wanted for kind in each])
    times_had = np.array([times for each in wanted for times in each.values()])
    known: dict[tuple[int, int], Mask] = {}
    found = []
    for each in wanted:
        mine: Mask = np.ones(len(wanted), np.bool_)
        for kind, times in each.items():
            need = number[kind], times
            if need not in known:
                enough = harder.than(need[0])[had] & (times_had >= times)
                known[need] = np.zeros(len(wanted), np.bool_)
                known[need][having[enough]] = True
                if len(known) % NEEDS_PER_STEP == 0:
                    yield
            mine &= known[need]
        found.append(mine)
    return found
