"""NodeResourcesFit: nodes by how full they are; emptier first, unless configured otherwise.

The strategies are kube-scheduler's LeastAllocated and MostAllocated, and its plugin
NodeResourcesBalancedAllocation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from dovetail.core.columns import Floats
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest

BEST = 100.0


class ScoringStrategy(StrEnum):
    LEAST_ALLOCATED = "leastAllocated"
    MOST_ALLOCATED = "mostAllocated"
    BALANCED = "balanced"


def least_allocated(nodes: Nodes, request: PodRequest) -> Floats:
    """The share of CPU and memory that would be left."""
    found = np.zeros(nodes.size)
    for name, amount in request.score_amounts:
        if name in nodes.score_resources.free:
            left = nodes.score_resources.free[name].values - amount
            found += np.maximum(left, 0, out=left) * nodes.scale[name].values
    return found


def used_shares(nodes: Nodes, request: PodRequest) -> list[Floats]:
    """The share that would be in use, of CPU and of memory."""
    return [
        np.minimum(
            (
                nodes.score_resources.allocatable[name].values
                - nodes.score_resources.free[name].values
                + amount
            )
            * nodes.scale[name].values,
            1,
        )
        for name, amount in request.score_amounts
        if name in nodes.score_resources.free
    ]


def most_allocated(nodes: Nodes, request: PodRequest) -> Floats:
    return sum(used_shares(nodes, request), np.zeros(nodes.size))


def balanced(nodes: Nodes, request: PodRequest) -> Floats:
    """Best where CPU and memory are used up alike."""
    shares = used_shares(nodes, request)
    return len(shares) - np.abs(shares[0] - shares[-1]) if shares else np.zeros(nodes.size)


RULES: Mapping[ScoringStrategy, Callable[[Nodes, PodRequest], Floats]] = {
    ScoringStrategy.LEAST_ALLOCATED: least_allocated,
    ScoringStrategy.MOST_ALLOCATED: most_allocated,
    ScoringStrategy.BALANCED: balanced,
}
"""Each from 0 to 2: one for CPU, one for memory."""


def score(nodes: Nodes, request: PodRequest, prefer: ScoringStrategy) -> Floats:
    found = RULES[prefer](nodes, request)
    found *= BEST / len(request.score_amounts)
    return found
