"""Preferred node affinity: the weights of the terms that a node meets."""

from __future__ import annotations

import numpy as np

from dovetail.podfit.columns import Floats, Mask
from dovetail.podfit.demand import Demand
from dovetail.podfit.filters.node_affinity import meeting
from dovetail.podfit.nodes import Nodes


def score(nodes: Nodes, demand: Demand, mask: Mask) -> Floats | None:
    if not demand.node_likes:
        return None
    total: Floats = np.zeros(nodes.size)
    for like in demand.node_likes:
        total += like.weight * meeting(nodes, like.preference)
    most = float(total.max(where=mask, initial=0))
    return total * (100 / most) if most else None
