"""Pods supposed to be on nodes for as long as their neighbours are explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.pod_request import PodRequest


@contextmanager
def supposed(nodes: Nodes, asked: Sequence[PodsToPack], assignment: Assignment) -> Iterator[None]:
    """All that filters look at is as if the pods were there, and as before afterwards."""
    places: list[_Supposed] = []
    try:
        for each, on in zip(asked, assignment, strict=True):
            for name, count in on.items():
                row = nodes.rows.find(name)
                if row is not None:
                    places.append(_Supposed(nodes, each.request, row, count))
        yield
    finally:
        for place in reversed(places):
            place.lift()


class _Supposed:
    """Pods of one kind on one node."""

    def __init__(self, nodes: Nodes, request: PodRequest, row: int, count: int) -> None:
        self._nodes, self._row = nodes, row
        self._amounts = [(name, amount * count) for name, amount in request.amounts]
        nodes.resources.add(row, self._amounts)
        self._pods = [nodes.pods.add(request.selectable, row) for _ in range(count)]
        self._ports = [nodes.ports.add(port, row) for port in request.ports]
        self._terms = [nodes.pod_anti_affinity.add(each, row) for each in request.pod_anti_affinity]

    def lift(self) -> None:
        nodes = self._nodes
        nodes.resources.add(self._row, self._amounts, -1)
        for multiset, places in (
            (nodes.pods, self._pods),
            (nodes.ports, self._ports),
            (nodes.pod_anti_affinity, self._terms),
        ):
            for place in reversed(places):
                multiset.remove(place)
