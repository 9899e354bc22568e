"""Nodes by how full they are: emptier first, as kube-scheduler does unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from dovetail.podfit.columns import Floats
from dovetail.podfit.demand import Demand
from dovetail.podfit.nodes import Nodes

BEST = 100.0


class Prefer(StrEnum):
    LEAST_ALLOCATED = "leastAllocated"
    MOST_ALLOCATED = "mostAllocated"
    BALANCED = "balanced"


def least_allocated(nodes: Nodes, demand: Demand) -> Floats:
    """The share of CPU and memory that would be left."""
    found = np.zeros(nodes.size)
    for name, amount in demand.weight:
        if name in nodes.weight.free:
            left = nodes.weight.free[name].values - amount
            found += np.maximum(left, 0, out=left) * nodes.scale[name].values
    return found


def used(nodes: Nodes, demand: Demand) -> list[Floats]:
    """The share that would be in use, of CPU and of memory."""
    return [
        np.minimum(
            (nodes.weight.allocatable[name].values - nodes.weight.free[name].values + amount)
            * nodes.scale[name].values,
            1,
        )
        for name, amount in demand.weight
        if name in nodes.weight.free
    ]


def most_allocated(nodes: Nodes, demand: Demand) -> Floats:
    return sum(used(nodes, demand), np.zeros(nodes.size))


def balanced(nodes: Nodes, demand: Demand) -> Floats:
    """Best where CPU and memory are used up alike."""
    shares = used(nodes, demand)
    return len(shares) - np.abs(shares[0] - shares[-1]) if shares else np.zeros(nodes.size)


RULES: Mapping[Prefer, Callable[[Nodes, Demand], Floats]] = {
    Prefer.LEAST_ALLOCATED: least_allocated,
    Prefer.MOST_ALLOCATED: most_allocated,
    Prefer.BALANCED: balanced,
}
"""Each from 0 to 2: one for CPU, one for memory."""


def score(nodes: Nodes, demand: Demand, prefer: Prefer) -> Floats:
    found = RULES[prefer](nodes, demand)
    found *= BEST / len(demand.weight)
    return found
