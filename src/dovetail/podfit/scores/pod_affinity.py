"""InterPodAffinity, preferred, both ways: what the pod prefers, and what pods on nodes prefer.

A pod on a node that requires pods near it is taken to prefer them a little.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Amounts, Floats, Mask
from dovetail.podfit.domains import Domains, selected_by_all, selects
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest


def score(nodes: Nodes, request: PodRequest, mask: Mask) -> Floats | None:
    if not request.preferred_pods and not nodes.preferences:
        return None
    total: Amounts = np.zeros(nodes.size, np.int64)
    add_own(nodes, request, total)
    add_of_others(nodes, request, total)
    inside = total.compress(mask)
    if not len(inside) or inside.min() == inside.max():
        return None
    low, high = int(inside.min()), int(inside.max())
    found: Floats = (total - low).astype(np.float64) * (100 / (high - low))
    return found


def add_own(nodes: Nodes, request: PodRequest, total: Amounts) -> None:
    for term, weight in request.preferred_pods:
        chosen = selected_by_all(nodes, (term,))
        if chosen.any():
            domains = Domains(nodes, term.topology_key)
            sums = domains.sums(nodes.pods.counts(chosen, nodes.size))
            total += weight * sums.take(domains.of)


def add_of_others(nodes: Nodes, request: PodRequest, total: Amounts) -> None:
    if not nodes.preferences:
        return
    worth = nodes.preferences.decided(
        request.selectable,
        lambda like: like[1] if selects(nodes, like[0], request.selectable) else 0,
        np.int64,
    )
    topologies: dict[str, list[int]] = {}
    for number, (term, _) in nodes.preferences.chosen(worth):
        topologies.setdefault(term.topology_key, []).append(number)
    for topology, numbers in topologies.items():
        part = np.zeros_like(worth)
        part[numbers] = worth[numbers]
        domains = Domains(nodes, topology)
        total += domains.sums(nodes.preferences.sums(part, nodes.size)).take(domains.of)
