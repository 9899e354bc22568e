"""Scores: which of the nodes that fit is best, a module per preference, each from 0 to 100.

`NodeTable.score` adds them up. Each follows the kube-scheduler Score plugin it names, and the
weights are those of kube-scheduler's default profile. ImageLocality and the system's default
spreading are left out.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.scores import node_affinity, pod_affinity, resources, spread, taints
from dovetail.podfit.scores.resources import ScoringStrategy


class NodeScorer(Protocol):
    def score(self, nodes: Nodes, request: PodRequest, mask: Mask, /) -> Floats | None:
        """By row; None: it prefers none of the rows in `mask`."""
        ...


PREFERENCES: tuple[tuple[NodeScorer, float], ...] = (
    (taints, 3),
    (node_affinity, 2),
    (spread, 2),
    (pod_affinity, 2),
)


def total(nodes: Nodes, request: PodRequest, mask: Mask, prefer: ScoringStrategy) -> Floats:
    """By row, more is better; minus infinity where `mask` is not. The first of equals is to win."""
    found = resources.score(nodes, request, prefer)
    for preference, weight in PREFERENCES:
        part = preference.score(nodes, request, mask)
        if part is not None:
            found += weight * part
    return np.where(mask, found, -np.inf)
