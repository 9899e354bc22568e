"""Candidates that a policy cannot tell apart are looked at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.columns import Rows
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import Case

Places = NDArray[np.intp]

MOST = 2**62


def distinct(case: Case, lines: Block, home: Rows) -> tuple[Places, Places]:
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
            *(np.maximum(case.holding(name, rows)[0], 0) for name in slot.resources),
        ):
            size = int(values.max()) + 1
            if bound > MOST // size:
                _, codes = np.unique(codes, return_inverse=True)
                bound = len(lines)
            codes = codes * size + values
            bound *= size
    _, samples, which = np.unique(codes, return_index=True, return_inverse=True)
    return samples, which
