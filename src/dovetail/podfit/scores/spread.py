"""PodTopologySpread: constraints that may be broken (ScheduleAnyway) prefer emptier domains.

Pods count more where there are many domains, so that a spread over a few zones is not lost in one
over many hosts; a larger `skew` makes differences matter less.
"""

from __future__ import annotations

from math import log

import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.podfit.domains import Domains
from dovetail.podfit.filters.spread import pod_counts, rows_counted, with_labels
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest


def score(nodes: Nodes, request: PodRequest, mask: Mask) -> Floats | None:
    if not request.soft_spread:
        return None
    ranked = with_labels(nodes, request.soft_spread)
    eligible = nodes.present & ranked
    ranked &= mask
    if not ranked.any():
        return None
    crowd: Floats = np.zeros(nodes.size)
    for spread in request.soft_spread:
        domains = Domains(nodes, spread.topology_key)
        weight = log(int(domains.containing(np.flatnonzero(ranked)).sum()) + 2)
        counted = rows_counted(nodes, request, spread, eligible)
        pods = domains.sums(pod_counts(nodes, request, spread) * counted)
        crowd += pods.take(domains.of) * weight + (spread.skew - 1)
    inside = crowd.compress(ranked)
    most = float(inside.max())
    best = 100 * (most + float(inside.min()) - crowd) / most if most else np.full(nodes.size, 100.0)
    return np.where(ranked, best, 0)
