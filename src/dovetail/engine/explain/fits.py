"""Fit test: which trees can serve a request at all; funnel, host and relax call it.

It costs less than a search, which tells in how many ways each tree can.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

import numpy as np

from dovetail.core.request import Request
from dovetail.engine.combine.combiner import Combiner
from dovetail.engine.feasible import feasible_trees, slots_of
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot

T = TypeVar("T")
Work: TypeAlias = Generator[None, None, T]
"""Yields now and then and returns its result."""


def fitting(
    snapshot: Snapshot, request: Request, among: RowNumbers | None = None
) -> Iterator[RowNumbers | None]:
    """The trees, some at a time; None now and then."""
    slots = slots_of(snapshot, request)
    trees = feasible_trees(snapshot, request, slots)
    if among is not None:
        trees = trees[np.isin(trees, among)]
    return Combiner(snapshot, request, slots).trees_with_combinations(trees)


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
