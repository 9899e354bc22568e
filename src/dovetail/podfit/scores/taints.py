"""TaintToleration: nodes whose taints ask pods to stay away (PreferNoSchedule) come last."""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.podfit.filters.taints import is_tolerated
from dovetail.podfit.nodes import Nodes, Taints
from dovetail.podfit.objects import Toleration
from dovetail.podfit.pod_request import PodRequest

SOFT_EFFECT = "PreferNoSchedule"


def untolerated_count(taints: Taints, tolerations: tuple[Toleration, ...]) -> int:
    """How many of them the pod does not tolerate."""
    return sum(
        taint.effect == SOFT_EFFECT and not is_tolerated(taint, tolerations) for taint in taints
    )


def score(nodes: Nodes, request: PodRequest, mask: Mask) -> Floats | None:
    table = nodes.taint_sets.decided(
        (SOFT_EFFECT, request.tolerations),
        lambda taints: untolerated_count(taints, request.tolerations),
        np.int64,
    )
    if not table.any():
        return None
    counts = table.take(nodes.taints)
    most = int(counts.max(where=mask, initial=0))
    return 100 - counts * (100 / most) if most else None
