"""Sharing: providers that serve other trees through a common aggregate.

The snapshot finds out who they are once per change of the trees; feasibility asks whom they reach.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from dovetail.engine.interned_sets import InternedSets
from dovetail.engine.inventories import RowNumbers

SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a provider that also serves the trees it shares an aggregate with."""


class Sharing:
    def __init__(
        self,
        rows: RowNumbers,
        tree: RowNumbers,
        aggregates: RowNumbers,
        aggregate_sets: InternedSets[str],
    ) -> None:
        """`tree` and `aggregates` are columns of the snapshot."""
        self.rows = rows
        """Rows that share, ascending."""
        self._tree, self._aggregates, self._sets = tree, aggregates, aggregate_sets
        self._trees = self._trees_by_aggregate() if len(rows) else {}
        self._reach: dict[int, RowNumbers] = {}

    def _trees_by_aggregate(self) -> dict[str, RowNumbers]:
        members = np.flatnonzero(self._aggregates)
        numbers = self._aggregates[members]
        found: dict[str, list[RowNumbers]] = defaultdict(list)
        for number in np.unique(numbers).tolist():
            trees = self._tree[members[numbers == number]]
            for aggregate in self._sets.members(number):
                found[aggregate].append(np.unique(trees))
        return {aggregate: np.unique(np.concatenate(t)) for aggregate, t in found.items()}

    def reach(self, row: int) -> RowNumbers:
        """The trees, other than its own, that a sharing row serves."""
        found = self._reach.get(row)
        if found is None:
            joined = [
                self._trees[aggregate]
                for aggregate in sorted(self._sets.members(self._aggregates[row]))
            ]
            trees = np.unique(np.concatenate(joined)) if joined else np.empty(0, np.int32)
            found = trees[trees != self._tree[row]]
            self._reach[row] = found
        return found
