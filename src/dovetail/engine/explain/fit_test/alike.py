"""Trees that are alike: what a request sees of them is the same, so one stands for all.

`relax` and `refine` ask about one tree of each kind. What a request sees are the form of the tree,
which constraints its rows meet, which of the amounts that groups contend for what is left could
serve together, and which rows of other trees are shared with it. The fewer constraints a request
has, the fewer kinds there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask
from dovetail.core.constraints import Constraint
from dovetail.core.explanation import Reason
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.inventories import ClassInventories, RowNumbers

Kind = bytes
TREES_PER_YIELD = 256
MOST_SUMS = 1024
"""Of amounts of one class; if there are more, what is left is looked at to the unit."""
BETWEEN_ROWS = frozenset((Reason.SHARED_CAPACITY, Reason.ISOLATION, Reason.SAME_SUBTREE))
"""Constraints that say nothing of a row by itself."""


class TreeViews:
    """What constraints see of each tree, in bytes that are equal where they see no difference."""

    def __init__(
        self, conditions: Conditions, kept: Sequence[Constraint], raised: str = ""
    ) -> None:
        """`raised`: a class of which the caller looks itself how much is left where."""
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
    conditions: Conditions, kept: Sequence[Constraint], raised: str
) -> NDArray[np.uint8]:
    """By row: bytes that differ wherever the constraints see a difference."""
    rows = conditions.snapshot.tree.size
    masks = [conditions.met(one) for one in kept if one.reason not in BETWEEN_ROWS]
    columns = [packed(masks[at : at + 8]) for at in range(0, len(masks), 8)]
    wanted: dict[str, list[int]] = {}
    for one in kept:
        if one.reason is Reason.AMOUNT and one.amount > 0:
            wanted.setdefault(one.name, []).append(one.amount)
    for name, amounts in wanted.items():
        inventories = conditions.snapshot.inventories_of(name)
        if inventories is None:
            continue
        if raised == name:
            columns += units_seen(inventories, rows)
        elif len(amounts) > 1:
            columns.append(level_seen(inventories, rows, amounts))
    if not columns:
        return np.zeros((rows, 1), np.uint8)
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


def packed(masks: Sequence[Mask]) -> NDArray[np.uint8]:
    """Up to eight masks as one column of bytes, a bit each."""
    found = np.zeros(len(masks[0]), np.uint8)
    for place, mask in enumerate(masks):
        found |= mask.view(np.uint8) << place
    return found.reshape(-1, 1)


def level_seen(
    inventories: ClassInventories, rows: int, amounts: Sequence[int]
) -> NDArray[np.uint8]:
    """Which of these amounts what is left of a class could serve together.

    That is told by the largest sum of some of them that is not more than what is left.
    """
    left = np.clip(inventories.headroom_of_all(), 0, sum(amounts))
    sums = {0}
    for amount in amounts:
        sums |= {each + amount for each in sums}
        if len(sums) > MOST_SUMS:
            return in_bytes(inventories, rows, left)
    levels = np.array(sorted(sums), np.int64).searchsorted(left, side="right")
    return in_bytes(inventories, rows, levels)


def units_seen(inventories: ClassInventories, rows: int) -> list[NDArray[np.uint8]]:
    """In which amounts a class can be had, if not in all."""
    if inventories.plain:
        return []
    units = (inventories.min_unit.values, inventories.step_size.values)
    return [in_bytes(inventories, rows, column.astype(np.int64)) for column in units]


def in_bytes(
    inventories: ClassInventories, rows: int, values: NDArray[np.int64]
) -> NDArray[np.uint8]:
    by_row = np.zeros(rows, np.int64)
    by_row[inventories.rows.values] = values
    return by_row.view(np.uint8).reshape(-1, 8)
