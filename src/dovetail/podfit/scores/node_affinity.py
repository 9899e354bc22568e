"""NodeAffinity: the weights of the preferred terms that a node meets."""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.podfit.filters.node_affinity import meeting
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest


def score(nodes: Nodes, request: PodRequest, mask: Mask) -> Floats | None:
    if not request.preferred_nodes:
        return None
    total: Floats = np.zeros(nodes.size)
    for like in request.preferred_nodes:
        total += like.weight * meeting(nodes, like.preference)
    most = float(total.max(where=mask, initial=0))
    return total * (100 / most) if most else None
