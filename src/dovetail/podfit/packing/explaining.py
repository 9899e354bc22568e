"""Why a set of pods does not fit: the first kind that is one too many, and the blocking node.

Packing has a proof when it comes here. What is left to find is where it fails: the most kinds, in
the order in which they were asked for, that fit in full, and the most of the next one beside them.
With these supposed to be on their nodes, filters say of one more what each node misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

import msgspec

from dovetail.core.explanation import Explanation, Reason
from dovetail.podfit.filtered_nodes import FilteredNodes
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack, Unpackable
from dovetail.podfit.packing.counting import Attempts
from dovetail.podfit.pod_request import PodRequest


def unpackable(asked: Sequence[PodsToPack], attempts: Attempts) -> Unpackable:
    """Of a set that is known not to fit."""
    kinds = attempts.kinds(asked)
    kind, is_sure = kinds.at_least, kinds.at_least == kinds.at_most
    # That all of the next kind are too many was found out before, if that is sure.
    most = asked[kind].count - 1 if is_sure else asked[kind].count
    pods = attempts.pods(asked, kind, most, kinds.assignment)
    nodes, assignment = attempts.nodes, tuple(map(dict, pods.assignment))
    with SupposedPods(nodes) as supposed:
        for each, on in zip(asked, assignment, strict=True):
            for name, count in on.items():
                supposed.add(each.request, nodes.rows.row(name), count)
        while True:
            kind, fitting = _first_not_full(asked, assignment)
            request = asked[kind].request
            filtered = FilteredNodes(nodes, request, among=attempts.rows)
            if not filtered.mask.any():
                return Unpackable(
                    kind=kind,
                    wanted=asked[kind].count,
                    fitting=fitting,
                    assignment=assignment,
                    explanation=_explanation(nodes, request, filtered),
                    is_most=is_sure and pods.at_least == pods.at_most,
                )
            # Only where the budget ended before the most was found.
            row = int(filtered.mask.argmax())
            supposed.add(request, row, 1)
            name = nodes.rows.names[row]
            assignment[kind][name] = assignment[kind].get(name, 0) + 1


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


class SupposedPods:
    """Pods that are on nodes for a while: all that filters look at is as if they were there, and as
    before afterwards."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def add(self, request: PodRequest, row: int, count: int) -> None:
        nodes, undo = self._nodes, self._undo.callback
        amounts = [(name, amount * count) for name, amount in request.amounts]
        nodes.resources.add(row, amounts)
        undo(nodes.resources.add, row, amounts, -1)
        for _ in range(count):
            undo(nodes.pods.remove, nodes.pods.add(request.selectable, row))
        for port in request.ports:
            undo(nodes.ports.remove, nodes.ports.add(port, row))
        for disk in request.disks:
            undo(nodes.disks.remove, nodes.disks.add(disk, row))
        for term in request.pod_anti_affinity:
            undo(nodes.pod_anti_affinity.remove, nodes.pod_anti_affinity.add(term, row))
