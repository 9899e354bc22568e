"""Why a set of pods does not fit: the first kind that is one too many, and the blocking node.

Packing has a proof when it comes here. What is left to find is where it fails: the most kinds, in
the order in which they were asked for, that fit in full, and the most of the next one beside them.
With these supposed to be on their nodes, filters say of one more what each node misses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from dovetail.core.explanation import Explanation, Reason
from dovetail.podfit.filtered_nodes import FilteredNodes
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack, Unpackable
from dovetail.podfit.packing.counting import Attempts
from dovetail.podfit.pod_request import PodRequest


def unpackable(asked: Sequence[PodsToPack], attempts: Attempts) -> Unpackable:
    kinds = attempts.kinds(asked)
    kind = min(kinds.at_least, len(asked) - 1)
    pods = attempts.pods(asked, kind, kinds.assignment)
    is_most = kinds.at_least == kinds.at_most and pods.at_least == pods.at_most
    assignment = pods.assignment
    while True:
        kind, fitting = _first_not_full(asked, assignment)
        request = asked[kind].request
        with supposed(attempts.nodes, asked, assignment):
            filtered = FilteredNodes(attempts.nodes, request, among=attempts.rows)
            taking = np.flatnonzero(filtered.mask).tolist()
            if not taking:
                explanation = _explanation(attempts.nodes, request, filtered)
                wanted = asked[kind].count
                return Unpackable(kind, wanted, fitting, assignment, explanation, is_most)
        # Only where the budget ended before the most was found.
        name = attempts.nodes.rows.names[taking[0]]
        more = {**assignment[kind], name: assignment[kind].get(name, 0) + 1}
        assignment = (*assignment[:kind], more, *assignment[kind + 1 :])


def _first_not_full(asked: Sequence[PodsToPack], assignment: Assignment) -> tuple[int, int]:
    """The first kind that is not placed in full, and how many of it are."""
    placed = [sum(on.values()) for on in assignment]
    return next((at, placed[at]) for at, each in enumerate(asked) if placed[at] < each.count)


def _explanation(nodes: Nodes, request: PodRequest, filtered: FilteredNodes) -> Explanation:
    """The nearest nodes are those that lack nothing but room, else those that would take the pod if
    they were idle, if there are any: others may have room since they are of no use."""
    found = filtered.explanation()
    idle = filtered.passing_if_idle()
    for rows in (FilteredNodes(nodes, request, Reason.AMOUNT, idle).mask, idle):
        if rows.any():
            nearest = FilteredNodes(nodes, request, among=rows).explanation().nearest
            return msgspec.structs.replace(found, nearest=nearest)
    return found


@contextmanager
def supposed(nodes: Nodes, asked: Sequence[PodsToPack], assignment: Assignment) -> Iterator[None]:
    """All that filters look at is as if the pods were there, and as before afterwards."""
    places: list[_Supposed] = []
    try:
        for each, on in zip(asked, assignment, strict=True):
            for name, count in on.items():
                places.append(_Supposed(nodes, each.request, nodes.rows.row(name), count))
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
        for place in reversed(self._pods):
            nodes.pods.remove(place)
        for place in reversed(self._ports):
            nodes.ports.remove(place)
        for place in reversed(self._terms):
            nodes.pod_anti_affinity.remove(place)
