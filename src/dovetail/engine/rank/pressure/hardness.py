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

from dovetail.core.columns import Mask
from dovetail.engine.feasible import trait_mask
from dovetail.engine.rank.demand import NeedKind, classes_of
from dovetail.engine.snapshot import Snapshot


class Hardness:
    """Of some requests, by the needs of each."""

    def __init__(self, snapshot: Snapshot, wanted: Sequence[Counter[NeedKind]]) -> None:
        self._wanted = wanted
        kinds = list(dict.fromkeys(kind for each in wanted for kind in each))
        self._number = {kind: at for at, kind in enumerate(kinds)}
        self._harder = harder_needs(snapshot, kinds)
        self._times = np.zeros((len(wanted), len(kinds)), np.int64)
        for line, each in enumerate(wanted):
            for kind, times in each.items():
                self._times[line, self._number[kind]] = times

    def at_least(self, request: int) -> Mask:
        """Which requests are as hard as this one."""
        found: Mask = np.ones(len(self._wanted), np.bool_)
        for kind, times in self._wanted[request].items():
            harder = self._harder[:, self._number[kind]]
            found &= (self._times[:, harder] >= times).any(axis=1)
        return found


def harder_needs(snapshot: Snapshot, kinds: Sequence[NeedKind]) -> Mask:
    """By need and need: whether the one is at least as hard as the other."""
    alone = np.array([kind.alone for kind in kinds], np.bool_)
    found: Mask = alone[:, None] >= alone
    for name in sorted({name for kind in kinds for name in classes_of(kind)}):
        amounts = np.array([dict(kind.resources).get(name, 0) for kind in kinds])
        found &= amounts[:, None] >= amounts
    masks = [trait_mask(snapshot, kind.required, kind.forbidden) for kind in kinds]
    if masks:
        eligible = np.stack(masks)
        # A row that serves the one and not the other makes the one no harder.
        found &= ~(eligible[:, None] & ~eligible).any(axis=2)
    return found
