"""InterPodAffinity, the pod's required anti-affinity: no pod it selects may be in the domain."""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import Domains, selected_by_all
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.terms import PodTerm

TOKEN = Reason.POD_ANTI_AFFINITY
FIELD = "affinity.podAntiAffinity"
REASON = "node(s) didn't match pod anti-affinity rules"


def rows_near(nodes: Nodes, term: PodTerm) -> Mask | None:
    """By row, whether a pod that is meant is near; None: there is none."""
    chosen = selected_by_all(nodes, (term,))
    if not chosen.any():
        return None
    domains = Domains(nodes, term.topology_key)
    found: Mask = domains.containing(nodes.pods.rows(chosen)).take(domains.of)
    return found


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    mask: Mask | None = None
    for term in request.pod_anti_affinity:
        bad = rows_near(nodes, term)
        if bad is not None:
            mask = ~bad if mask is None else mask & ~bad
    return mask


def passing_if_idle(_nodes: Nodes, _request: PodRequest) -> Mask | None:
    return None


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    for term in request.pod_anti_affinity:
        bad = rows_near(nodes, term)
        if bad is not None and bad[row]:
            place = f"{term.topology_key}={nodes.labels.of(row)[term.topology_key]}"
            return f"pod anti-affinity: a pod that it means is in {place}"
    return ""
