"""Rows that were tried for an amount: which others need not be.

`refine` asks it while it looks for the largest amount that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le

import numpy as np

from dovetail.core.constraints import Constraint
from dovetail.engine.explain.fit_test.alike import Kind, TreeViews
from dovetail.engine.explain.fit_test.distance import Counts
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.fit_test.offers import Place


class TriedPlaces:
    """Rows that were tried for an amount: which others cannot give more than those.

    Of rows in the same place of trees that are alike, those whose trees have nowhere more left of
    the class. If no other group wants of it, what is left elsewhere does not matter.
    """

    def __init__(self, fleet: FleetProblem, one: Constraint, others: Sequence[Constraint]) -> None:
        self._snapshot = fleet.snapshot
        self._views = TreeViews(fleet.conditions, others, one.name)
        self._tried: dict[tuple[Kind, Place], list[list[int]]] = {}
        self._trees: dict[int, tuple[Kind, list[int]]] = {}
        inventories = fleet.snapshot.inventories_of(one.name)
        wanted = [each.amount for each in others if each.name == one.name]
        self._left: Counts | None = None
        if wanted and inventories is not None:
            most = sum(wanted) + one.amount
            self._left = np.zeros(fleet.snapshot.tree.size, np.int64)
            self._left[inventories.rows.values] = np.clip(inventories.headroom_of_all(), 0, most)

    def before(self, tree: int, row: int) -> bool:
        """Whether such a row was tried before; it is tried now, if not."""
        own = self._snapshot.rows_of(tree)
        # Rows of other trees are in the kind by their numbers.
        place = row - own.start if row in own else -1 - row
        kind, left = self._seen(tree, own)
        known = self._tried.setdefault((kind, place), [])
        for more in known:
            if all(map(le, left, more)):
                return True
        known.append(left)
        return False

    def _seen(self, tree: int, own: range) -> tuple[Kind, list[int]]:
        """The kind of a tree, and what is left where; the same for all its rows."""
        found = self._trees.get(tree)
        if found is None:
            left = [] if self._left is None else self._left[own.start : own.stop].tolist()
            found = self._trees[tree] = (self._views.kind(tree), left)
        return found
