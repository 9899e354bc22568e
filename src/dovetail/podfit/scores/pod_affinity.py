"""Preferred pod affinity, both ways: what the pod likes, and what pods that are there like of it.

A pod that is there and requires pods near is taken to like them a little.
"""

from __future__ import annotations

import numpy as np

from dovetail.podfit.columns import Amounts, Floats, Mask
from dovetail.podfit.demand import Demand
from dovetail.podfit.domains import Domains, means, meant
from dovetail.podfit.nodes import Nodes


def score(nodes: Nodes, demand: Demand, mask: Mask) -> Floats | None:
    if not demand.likes and not nodes.likes:
        return None
    total: Amounts = np.zeros(nodes.size, np.int64)
    add_own(nodes, demand, total)
    add_of_others(nodes, demand, total)
    inside = total.compress(mask)
    if not len(inside) or inside.min() == inside.max():
        return None
    low, high = int(inside.min()), int(inside.max())
    found: Floats = (total - low).astype(np.float64) * (100 / (high - low))
    return found


def add_own(nodes: Nodes, demand: Demand, total: Amounts) -> None:
    for term, weight in demand.likes:
        chosen = meant(nodes, (term,))
        if chosen.any():
            domains = Domains(nodes, term.topology)
            sums = domains.sums(nodes.pods.counts(chosen, nodes.size))
            total += weight * sums.take(domains.of)


def add_of_others(nodes: Nodes, demand: Demand, total: Amounts) -> None:
    if not nodes.likes:
        return
    worth = nodes.likes.decided(
        demand.kind,
        lambda like: like[1] if means(nodes, like[0], demand.kind) else 0,
        np.int64,
    )
    topologies: dict[str, list[int]] = {}
    for number, (term, _) in nodes.likes.chosen(worth):
        topologies.setdefault(term.topology, []).append(number)
    for topology, numbers in topologies.items():
        part = np.zeros_like(worth)
        part[numbers] = worth[numbers]
        domains = Domains(nodes, topology)
        total += domains.sums(nodes.likes.sums(part, nodes.size)).take(domains.of)
