"""Fit test: which trees can serve a request at all; funnel, host and relax call it.

It costs less than a search, which tells in how many ways each tree can.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.core.request import Request
from dovetail.engine.combine.combiner import Combiner
from dovetail.engine.feasible import feasible_in_steps, in_tree_order, slots_in_steps
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

__all__ = ["Work", "any_fits", "fitting", "how_many"]


def fitting(
    snapshot: Snapshot, request: Request, among: RowNumbers | None = None
) -> Iterator[RowNumbers | None]:
    """The trees, some at a time; None now and then."""
    slots = yield from slots_in_steps(snapshot, request)
    alive = yield from feasible_in_steps(snapshot, request, slots)
    trees = in_tree_order(snapshot, alive)
    if among is not None:
        trees = trees[np.isin(trees, among)]
    yield from Combiner(snapshot, request, slots).trees_with_combinations(trees)


def how_many(snapshot: Snapshot, request: Request) -> Work[int]:
    count = 0
    for some in fitting(snapshot, request):
        if some is None:
            yield
        else:
            count += len(some)
    return count


def any_fits(snapshot: Snapshot, request: Request, among: RowNumbers | None = None) -> Work[bool]:
    for some in fitting(snapshot, request, among):
        if some is None:
            yield
        elif len(some):
            return True
    return False
