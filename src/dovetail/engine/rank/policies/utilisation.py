"""Utilisation of trees and rows after a claim, which `spread` and `pack` see in opposite ways."""

from __future__ import annotations

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase, by_class, mean, share


class Utilisation:
    """The free shares that candidates leave behind, in millionths of capacity."""

    def __init__(self, case: PolicyCase) -> None:
        self._case = case

    def of_trees(self, lines: Block) -> Numbers:
        return by_class(self._case, lines, self._left)

    def _left(self, name: str, trees: RowNumbers) -> Numbers:
        totals = self._case.totals[name]
        return share(totals.free[trees] - self._case.requested[name], totals.capacity[trees])

    def of_rows(self, lines: Block) -> Numbers:
        left = []
        for at, slot in enumerate(self._case.slots):
            for name, amount in slot.resources.items():
                free, capacity = self._case.free_and_capacity(name, lines[:, at])
                left.append(share(free - amount, capacity))
        return mean(left)
