"""Trees that are alike: what a request sees of them is the same, so one stands for all.

`relax` and `refine` ask about one tree of each kind. What a request sees are the form of the tree,
which constraints its rows meet, what is left of classes that groups contend for (no more of it than
they want together), and which rows of other trees are shared with it. The fewer constraints a
request has, the fewer kinds there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.constraints import Constraint
from dovetail.core.explanation import Reason
from dovetail.engine.explain.conditions import Conditions
from dovetail.engine.explain.fits import Work
from dovetail.engine.inventories import ClassInventories, RowNumbers

Kind = bytes
TREES_PER_YIELD = 256
BETWEEN_ROWS = frozenset((Reason.SHARED_CAPACITY, Reason.ISOLATION, Reason.SAME_SUBTREE))
"""Constraints that say nothing of a row by itself."""


class TreeViews:
    """What constraints see of each tree, in bytes that are equal where they see no difference."""

    def __init__(
        self, conditions: Conditions, kept: Sequence[Constraint], raised: Constraint | None = None
    ) -> None:
        """`raised`: an amount that rows give as much of as they can, up to what it says."""
        snapshot = conditions.snapshot
        self._seen = seen_of_rows(conditions, kept, raised)
        self._starts = snapshot.tree_start.values
        self._sizes = snapshot.tree_size.values
        self._shapes = snapshot.tree_shape.values
        self._sharing, self._shared = conditions.pairs

    def kind(self, tree: int) -> Kind:
        start = self._starts[tree]
        own = self._seen[start : start + self._sizes[tree]].tobytes()
        shape: bytes = self._shapes[tree : tree + 1].tobytes()
        if not len(self._sharing):
            return shape + own
        low, high = self._sharing.searchsorted((tree, tree + 1))
        return shape + own + self._shared[low:high].tobytes()

    def kinds(self, trees: RowNumbers) -> Work[dict[Kind, list[int]]]:
        """The trees of each kind; kinds in the order of the first of their trees."""
        found: dict[Kind, list[int]] = {}
        for at, tree in enumerate(trees.tolist()):
            found.setdefault(self.kind(tree), []).append(tree)
            if at % TREES_PER_YIELD == TREES_PER_YIELD - 1:
                yield
        return found


def seen_of_rows(
    conditions: Conditions, kept: Sequence[Constraint], raised: Constraint | None
) -> NDArray[np.uint8]:
    """By row: bytes that differ wherever the constraints see a difference."""
    rows = conditions.snapshot.tree.size
    masks = [conditions.met(one) for one in kept if one.reason not in BETWEEN_ROWS]
    columns = [np.packbits(np.stack(masks, axis=1), axis=1)] if masks else []
    wanted: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for one in (*kept, *([] if raised is None else [raised])):
        if one.reason is Reason.AMOUNT:
            wanted[one.name] += abs(one.amount)
            times[one.name] += 1
    for name, most in wanted.items():
        inventories = conditions.snapshot.inventories_of(name)
        if times[name] > 1 and inventories is not None:
            is_raised = raised is not None and raised.name == name
            columns += numbers_seen(inventories, rows, most, units=is_raised)
    if not columns:
        return np.zeros((rows, 1), np.uint8)
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


def numbers_seen(
    inventories: ClassInventories, rows: int, most: int, *, units: bool
) -> list[NDArray[np.uint8]]:
    """What is left of a class, up to `most`; and in which amounts it can be had."""
    columns = [np.clip(inventories.headroom_of_all(), 0, most)]
    if units and not inventories.plain:
        columns += [inventories.min_unit.values, inventories.step_size.values]
    found = []
    for column in columns:
        by_row = np.zeros(rows, np.int64)
        by_row[inventories.rows.values] = column
        found.append(by_row.view(np.uint8).reshape(-1, 8))
    return found
