"""NodeResourcesFit: enough free of each resource the pod requests, and of places for pods."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from dovetail.core import quantity
from dovetail.core.columns import Mask
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.pods import CPU, HUGE_PAGES, MEMORY, PODS, STORAGE


def enough(nodes: Nodes, name: str, amount: int) -> Mask:
    column = nodes.resources.free.get(name)
    if column is None:
        return np.zeros(nodes.size, np.bool_)
    found: Mask = column.values >= amount
    return found


def passing(nodes: Nodes, request: PodRequest) -> Mask:
    first, *rest = request.amounts
    mask = enough(nodes, *first)
    for name, amount in rest:
        mask &= enough(nodes, name, amount)
    return mask


def reasons(nodes: Nodes, request: PodRequest, failed: Mask) -> Counter[str]:
    """A node that lacks two resources counts for both."""
    return Counter(
        {
            reason(name): int((failed & ~enough(nodes, name, amount)).sum())
            for name, amount in request.amounts
        }
    )


def reason(name: str) -> str:
    return "Too many pods" if name == PODS else f"Insufficient {name}"


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    for name, amount in request.amounts:
        has, free = nodes.resources.amounts(row, name)
        if free < amount:
            wants, left, of = (written(name, one) for one in (amount, max(free, 0), has))
            short = written(name, amount - free)
            return f"{reason(name)}: wants {wants}, free {left} of {of}, {short} short"
    return ""


def written(name: str, amount: int) -> str:
    """As people write it: 1500m, 2Gi."""
    if name == CPU:
        return quantity.format(Fraction(amount, 1000))
    in_bytes = name in (MEMORY, STORAGE) or name.startswith(HUGE_PAGES)
    return quantity.format(Fraction(amount), binary=True) if in_bytes else str(amount)
