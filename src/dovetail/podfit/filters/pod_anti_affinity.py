"""Required pod anti-affinity of the pod itself: nothing it means may be near."""

from __future__ import annotations

from collections import Counter

from dovetail.podfit.columns import Mask
from dovetail.podfit.demand import Demand
from dovetail.podfit.domains import Domains, meant
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.terms import PodTerm

REASON = "node(s) didn't match pod anti-affinity rules"


def near(nodes: Nodes, term: PodTerm) -> Mask | None:
    """By row, whether a pod that is meant is near; None: there is none."""
    chosen = meant(nodes, (term,))
    if not chosen.any():
        return None
    domains = Domains(nodes, term.topology)
    found: Mask = domains.touched(nodes.pods.rows(chosen)).take(domains.of)
    return found


def passing(nodes: Nodes, demand: Demand) -> Mask | None:
    mask: Mask | None = None
    for term in demand.apart:
        bad = near(nodes, term)
        if bad is not None:
            mask = ~bad if mask is None else mask & ~bad
    return mask


def reasons(_nodes: Nodes, _demand: Demand, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, demand: Demand, row: int) -> str:
    for term in demand.apart:
        bad = near(nodes, term)
        if bad is not None and bad[row]:
            place = f"{term.topology}={nodes.labels.of(row)[term.topology]}"
            return f"pod anti-affinity: a pod that it means is in {place}"
    return ""
