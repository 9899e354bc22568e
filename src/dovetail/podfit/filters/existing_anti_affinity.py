"""InterPodAffinity, anti-affinity of pods on nodes: they keep away the pods that they select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import Domains, selects
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest

TOKEN = Reason.EXISTING_ANTI_AFFINITY
FIELD = "labels"
REASON = "node(s) didn't satisfy existing pods anti-affinity rules"


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    mask: Mask | None = None
    for _, bad in excluded_rows(nodes, request):
        mask = ~bad if mask is None else mask & ~bad
    return mask


def excluded_rows(nodes: Nodes, request: PodRequest) -> Iterator[tuple[str, Mask]]:
    """By topology: the rows that some pod keeps this one from."""
    if not nodes.pod_anti_affinity:
        return
    against = nodes.pod_anti_affinity.decided(
        request.selectable, lambda term: selects(nodes, term, request.selectable)
    )
    topologies: dict[str, list[int]] = {}
    for number, term in nodes.pod_anti_affinity.chosen(against):
        topologies.setdefault(term.topology_key, []).append(number)
    for topology, numbers in topologies.items():
        chosen: Mask = np.zeros(len(against), np.bool_)
        chosen[numbers] = True
        domains = Domains(nodes, topology)
        yield topology, domains.containing(nodes.pod_anti_affinity.rows(chosen)).take(domains.of)


def passing_if_idle(_nodes: Nodes, _request: PodRequest) -> Mask | None:
    return None


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    for topology, bad in excluded_rows(nodes, request):
        if bad[row]:
            place = f"{topology}={nodes.labels.of(row)[topology]}"
            return f"a pod in {place} keeps this one away by its anti-affinity"
    return ""
