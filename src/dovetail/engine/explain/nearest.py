"""The trees that come nearest to serving a request, without looking at each by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.request import Request
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.feasible import Slot, slots_of, suitable_roots, trees_with
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot


def nearest(snapshot: Snapshot, request: Request, count: int) -> Work[list[int]]:
    """Trees by the number of slots they cannot fill, then by how much of the amounts they lack."""
    slots = slots_of(snapshot, request)
    missed = (~suitable_roots(snapshot, request)).astype(np.int64)
    lacking = np.zeros(len(missed))
    for slot in slots:
        unfilled = ~trees_with(snapshot, slot.own, slot.shared_tree)
        missed += unfilled
        lacking += np.where(unfilled, least_lacking(snapshot, slot), 0)
        yield
    trees: RowNumbers = np.flatnonzero(snapshot.tree_size.values > 0).astype(np.int32)
    roots = snapshot.tree_root_id.values[trees]
    order = np.lexsort((roots, lacking[trees], missed[trees]))
    nearest_trees: list[int] = trees[order[:count]].tolist()
    return nearest_trees


def least_lacking(snapshot: Snapshot, slot: Slot) -> NDArray[np.float64]:
    """By tree: the share of the slot's amounts that even its best row has not free."""
    lacking = np.full(snapshot.tree.size, float(len(slot.resources)))
    for name, amount in slot.resources.items():
        inventories = snapshot.inventories_of(name)
        if inventories is not None:
            there = np.clip(inventories.headroom_of_all() / amount, 0, 1)
            lacking[inventories.rows.values] -= there
    live = snapshot.tree.values >= 0
    least = np.full(snapshot.tree_size.size, np.inf)
    np.minimum.at(least, snapshot.tree.values[live], lacking[live])
    return least
