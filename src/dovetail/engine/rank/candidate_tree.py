"""The tree that a candidate belongs to."""

from __future__ import annotations

import numpy as np

from dovetail.engine.columns import Rows
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.snapshot import Snapshot


def homes(snapshot: Snapshot, lines: Block) -> Rows:
    """For each candidate the tree of the first of its rows that does not serve other trees."""
    if not len(snapshot.sharing.rows):
        first: Rows = snapshot.tree.values.take(lines[:, 0])
        return first
    trees = snapshot.tree.values[lines]
    shares = np.zeros(snapshot.tree.size, np.bool_)
    shares[snapshot.sharing.rows] = True
    found: Rows = trees[np.arange(len(lines)), (~shares[lines]).argmax(axis=1)]
    return found
