"""Required pod anti-affinity of pods that are there: they keep away the pods that they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dovetail.podfit.columns import Mask
from dovetail.podfit.demand import Demand
from dovetail.podfit.domains import Domains, means
from dovetail.podfit.nodes import Nodes

REASON = "node(s) didn't satisfy existing pods anti-affinity rules"


def passing(nodes: Nodes, demand: Demand) -> Mask | None:
    mask: Mask | None = None
    for _, bad in kept_off(nodes, demand):
        mask = ~bad if mask is None else mask & ~bad
    return mask


def kept_off(nodes: Nodes, demand: Demand) -> Iterator[tuple[str, Mask]]:
    """By topology: the rows that some pod keeps this one from."""
    if not nodes.apart:
        return
    against = nodes.apart.decided(demand.kind, lambda term: means(nodes, term, demand.kind))
    topologies: dict[str, list[int]] = {}
    for number, term in nodes.apart.chosen(against):
        topologies.setdefault(term.topology, []).append(number)
    for topology, numbers in topologies.items():
        chosen: Mask = np.zeros(len(against), np.bool_)
        chosen[numbers] = True
        domains = Domains(nodes, topology)
        yield topology, domains.touched(nodes.apart.rows(chosen)).take(domains.of)


def reasons(_nodes: Nodes, _demand: Demand, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, demand: Demand, row: int) -> str:
    for topology, bad in kept_off(nodes, demand):
        if bad[row]:
            place = f"{topology}={nodes.labels.of(row)[topology]}"
            return f"a pod in {place} keeps this one away by its anti-affinity"
    return ""
