"""Trees that are alike: what a request sees of them is the same, so one stands for all.

`relax` asks about one tree of each kind. What a request sees are the form of the tree, which
constraints its rows meet, what is left of classes that groups contend for (no more of it than they
want together), and which rows of other trees are shared with it.
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.explain.conditions import Conditions
from dovetail.engine.explain.fits import Work
from dovetail.engine.inventories import RowNumbers

Kind = bytes
TREES_PER_YIELD = 256


def kinds(conditions: Conditions, trees: RowNumbers) -> Work[dict[Kind, list[int]]]:
    """The trees of each kind; kinds in the order of the first of their trees."""
    snapshot, seen = conditions.snapshot, seen_of_rows(conditions)
    yield
    starts = snapshot.tree_start.values
    sizes = snapshot.tree_size.values
    shapes = snapshot.tree_shape.values
    sharing, rows = conditions.pairs
    lows, highs = np.searchsorted(sharing, (trees, trees + 1)) if len(sharing) else (trees, trees)
    found: dict[Kind, list[int]] = {}
    for at, tree in enumerate(trees.tolist()):
        start, shape = starts[tree], shapes[tree : tree + 1].tobytes()
        own = seen[start : start + sizes[tree]].tobytes()
        shared = rows[lows[at] : highs[at]].tobytes() if len(sharing) else b""
        found.setdefault(shape + own + shared, []).append(tree)
        if at % TREES_PER_YIELD == TREES_PER_YIELD - 1:
            yield
    return found


def seen_of_rows(conditions: Conditions) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """By row: bytes that differ wherever the request sees a difference."""
    snapshot, demands = conditions.snapshot, conditions.demands
    between = {demands.shared, *demands.relations} - set(demands.together)
    numbers = [at for at in range(len(demands.constraints)) if at not in between]
    masks = [conditions.mask(at) for at in numbers]
    columns = [np.packbits(np.stack(masks, axis=1), axis=1)] if masks else []
    wanted: dict[str, list[int]] = {}
    for group in demands.groups:
        for name, at in group.amounts.items():
            wanted.setdefault(name, []).append(demands.constraints[at].amount)
    for name, amounts in wanted.items():
        inventories = snapshot.inventories_of(name)
        if len(amounts) > 1 and inventories is not None:
            left = np.zeros(snapshot.tree.size, np.int64)
            left[inventories.rows.values] = np.clip(inventories.headroom_of_all(), 0, sum(amounts))
            columns.append(left.view(np.uint8).reshape(-1, 8))
    return np.ascontiguousarray(np.concatenate(columns, axis=1))
