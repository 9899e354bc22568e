"""Candidates in blocks, as ranking sees them: their trees, and which policies cannot tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.policies.policy import PolicyCase
from dovetail.engine.snapshot import Snapshot

Numbers = NDArray[np.intp]

MOST_CODES = 2**62


def trees_of(snapshot: Snapshot, lines: Block) -> RowNumbers:
    """For each candidate the tree of the first of its rows that does not serve other trees."""
    if not len(snapshot.sharing.rows):
        first: RowNumbers = snapshot.tree.values.take(lines[:, 0])
        return first
    trees = snapshot.tree.values[lines]
    shares = np.zeros(snapshot.tree.size, np.bool_)
    shares[snapshot.sharing.rows] = True
    found: RowNumbers = trees[np.arange(len(lines)), (~shares[lines]).argmax(axis=1)]
    return found


def distinct_candidates(
    case: PolicyCase, lines: Block, home: RowNumbers
) -> tuple[Numbers, Numbers]:
    """One line of each kind, and for each line which kind it is; `home` is the tree of each.

    Lines are alike if they are of one tree and the rows they take have the same traits and the
    same amounts free of what is taken.
    """
    roots = case.snapshot.tree_start.values[home]
    codes, bound = home.astype(np.int64), case.snapshot.tree_size.size
    for at, slot in enumerate(case.slots):
        rows = lines[:, at]
        if (rows == roots).all():
            continue
        for values in (
            case.snapshot.traits.values[rows].astype(np.int64),
            *(np.maximum(case.free_and_capacity(name, rows)[0], 0) for name in slot.resources),
        ):
            size = int(values.max()) + 1
            if bound > MOST_CODES // size:
                _, codes = np.unique(codes, return_inverse=True)
                bound = len(lines)
            codes = codes * size + values
            bound *= size
    _, samples, which = np.unique(codes, return_index=True, return_inverse=True)
    return samples, which
