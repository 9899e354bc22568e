"""Quick packing: first fit and totals, for pods that demand nothing of each other.

The packer asks here before it asks the solver, since a contended cluster takes hundreds of
questions and most are easy. Both answers are proofs: an assignment, or that nodes have less in all
than is asked for. What is neither is left to the solver. What nodes have and where pods may go is
read off the table once; the table does not change while a packer lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from dovetail.core.explanation import Reason
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.table import NodeTable


class Quick(Enum):
    TOO_MUCH = "too much"
    UNKNOWN = "unknown"


class ReadRequest(msgspec.Struct, frozen=True):
    """A request, as quick packing sees it."""

    request: PodRequest
    """Kept, so that no other gets its id."""
    amounts: tuple[tuple[int, int], ...]
    """Numbers of resources, and how much of them."""
    nodes: tuple[int, ...]
    """That would take it if they had room."""
    share: float
    """Of what an average node has free: the largest by resource."""
    is_plain: bool
    """Whether it demands nothing of other pods of the set."""


class QuickPacking:
    def __init__(self, table: NodeTable, nodes: Sequence[str]) -> None:
        self._table, self._nodes = table, nodes
        self._resources: dict[str, int] = {}
        self._free: list[list[int]] = []
        """By resource and node."""
        self._totals: list[int] = []
        self._read: dict[int, ReadRequest] = {}

    def answer(self, asked: Sequence[PodsToPack]) -> Assignment | Quick:
        kinds = [self._request(each.request) for each in asked]
        if not all(each.is_plain for each in kinds):
            return Quick.UNKNOWN
        wanted = [0] * len(self._totals)
        for each, kind in zip(asked, kinds, strict=True):
            for resource, amount in kind.amounts:
                wanted[resource] += amount * each.count
        if any(map(int.__gt__, wanted, self._totals)):
            return Quick.TOO_MUCH
        return self._first_fit([each.count for each in asked], kinds)

    def _first_fit(self, counts: Sequence[int], kinds: Sequence[ReadRequest]) -> Assignment | Quick:
        """The largest kinds first, each on the nodes that are fullest already."""
        free = [list(column) for column in self._free]
        found: list[dict[str, int]] = [{} for _ in kinds]
        for at in sorted(range(len(kinds)), key=lambda at: -kinds[at].share):
            kind, left = kinds[at], counts[at]
            if not left:
                continue
            rooms = []
            for node in kind.nodes:
                room = min(free[resource][node] // amount for resource, amount in kind.amounts)
                if room > 0:
                    rooms.append((room, node))
            rooms.sort()
            for room, node in rooms:
                taken = min(room, left)
                for resource, amount in kind.amounts:
                    free[resource][node] -= amount * taken
                found[at][self._nodes[node]] = taken
                left -= taken
                if not left:
                    break
            if left:
                return Quick.UNKNOWN
        return tuple(found)

    def _request(self, request: PodRequest) -> ReadRequest:
        known = self._read.get(id(request))
        if known is None:
            known = self._read[id(request)] = self._read_request(request)
        return known

    def _read_request(self, request: PodRequest) -> ReadRequest:
        is_plain = not (
            request.ports
            or request.disks
            or request.pod_affinity
            or request.pod_anti_affinity
            or request.spread
        )
        rows = self._table.nodes.rows
        mask = self._table.filter(request, among=self._nodes, without=Reason.AMOUNT).mask
        amounts = tuple((self._number(name), amount) for name, amount in request.amounts)
        size = max(len(self._nodes), 1)
        return ReadRequest(
            request=request,
            amounts=amounts,
            nodes=tuple(at for at, name in enumerate(self._nodes) if mask[rows.row(name)]),
            share=max(amount * size / max(self._totals[number], 1) for number, amount in amounts),
            is_plain=is_plain,
        )

    def _number(self, resource: str) -> int:
        if resource not in self._resources:
            self._resources[resource] = len(self._resources)
            column = [max(self._table.free(name, resource), 0) for name in self._nodes]
            self._free.append(column)
            self._totals.append(sum(column))
        return self._resources[resource]
