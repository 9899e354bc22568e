"""NodeResourcesFit: enough free of each resource the pod requests, and of places for pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dovetail.core import explanation_text, quantity
from dovetail.core.columns import Column, Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.pod_sum import CPU, HUGE_PAGES, MEMORY, PODS, STORAGE

TOKEN = Reason.AMOUNT
FIELD = "containers.resources.requests"


class ResourceShortage(NamedTuple):
    """A resource of which a node has too little free; amounts in its smallest unit."""

    name: str
    wanted: int
    free: int
    """Below nothing, if the node was given too much."""
    capacity: int

    @property
    def words(self) -> str:
        wanted, free, capacity, short = (
            amount_text(self.name, amount)
            for amount in (self.wanted, max(self.free, 0), self.capacity, self.wanted - self.free)
        )
        text = explanation_text.shortfall(wanted, free, capacity, short)
        return f"{reason(self.name)}: {text}"


def has_enough(columns: Mapping[str, Column], nodes: Nodes, name: str, amount: int) -> Mask:
    column = columns.get(name)
    if column is None:
        return np.zeros(nodes.size, np.bool_)
    found: Mask = column.values >= amount
    return found


def passing(nodes: Nodes, request: PodRequest) -> Mask:
    return enough_of_all(nodes.resources.free, nodes, request)


def passing_if_idle(nodes: Nodes, request: PodRequest) -> Mask:
    return enough_of_all(nodes.resources.allocatable, nodes, request)


def enough_of_all(columns: Mapping[str, Column], nodes: Nodes, request: PodRequest) -> Mask:
    first, *rest = request.amounts
    mask = has_enough(columns, nodes, *first)
    for name, amount in rest:
        mask &= has_enough(columns, nodes, name, amount)
    return mask


def reasons(nodes: Nodes, request: PodRequest, failed: Mask) -> Counter[str]:
    """A node that lacks two resources counts for both."""
    free = nodes.resources.free
    return Counter(
        {
            reason(name): int((failed & ~has_enough(free, nodes, name, amount)).sum())
            for name, amount in request.amounts
        }
    )


def reason(name: str) -> str:
    return "Too many pods" if name == PODS else f"Insufficient {name}"


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    return next((each.words for each in shortages(nodes, request, row)), "")


def shortages(nodes: Nodes, request: PodRequest, row: int) -> Iterator[ResourceShortage]:
    for name, amount in request.amounts:
        has, free = nodes.resources.amounts(row, name)
        if free < amount:
            yield ResourceShortage(name, amount, free, has)


def amount_text(name: str, amount: int) -> str:
    """As people write it: 1500m, 2Gi."""
    if name == CPU:
        return quantity.format(Fraction(amount, 1000))
    in_bytes = name in (MEMORY, STORAGE) or name.startswith(HUGE_PAGES)
    return quantity.format(Fraction(amount), binary=True) if in_bytes else str(amount)
