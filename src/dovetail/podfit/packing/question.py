"""The question as the solver sees it: kinds that are alike taken together, nodes in classes.

`deciding` makes one of the table and what is asked, and reads the assignment off the solver's
answer with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.node_classes import (
    ApartMarks,
    ClassRows,
    PodKind,
    free_amounts,
    node_classes,
)
from dovetail.podfit.packing.relations import Relations, relations_among, rows_for
from dovetail.podfit.pod_request import PodRequest

Placement = tuple[int, int, int]
"""A kind, the row of a node, and how many of the kind are there."""


class AskedKind(msgspec.Struct, frozen=True):
    """A kind of the solver, and those asked for that it stands for, with how many of each."""

    kind: PodKind
    request: PodRequest
    """Of the first of them; they are alike in all that packing looks at."""
    of: tuple[tuple[int, int], ...]


class Question:
    """Kinds are numbered by size, the largest first; so are those of `relations`."""

    def __init__(
        self, nodes: Nodes, asked: Sequence[PodsToPack], among: Collection[str] | None
    ) -> None:
        self.nodes, self._width = nodes, len(asked)
        wanted = _with_equal_requests(asked)
        requests = [asked[of[0][0]].request for of in wanted]
        relations = relations_among(nodes, requests)
        names = tuple(dict.fromkeys(name for each in requests for name, _ in each.amounts))
        chosen = rows_among(nodes, among)
        every: Mask = np.zeros(nodes.size, np.bool_)
        kinds = []
        for at, (of, request) in enumerate(zip(wanted, requests, strict=True)):
            rows = chosen & rows_for(nodes, request, relations, at)
            every |= rows
            amounts = dict(request.amounts)
            count = sum(each for _, each in of)
            kind = PodKind(count, tuple(amounts.get(name, 0) for name in names), rows)
            kinds.append(AskedKind(kind, request, of))
        self.rows: Numbers = np.flatnonzero(every).astype(np.int32)
        """Of nodes that any kind may go to."""
        self.free = free_amounts(nodes, names, self.rows)
        groups = _by_size(_alike(kinds, relations.kinds()), self.free)
        self.kinds = [_together(group) for group in groups]
        numbers = {each.of[0][0]: at for at, group in enumerate(groups) for each in group}
        self.relations: Relations = relations.renumbered([numbers[of[0][0]] for of in wanted])

    def node_classes(self, apart: ApartMarks, regions: Numbers) -> list[ClassRows]:
        """`regions`: by row, which nodes must not be taken together."""
        kinds = [each.kind for each in self.kinds]
        return node_classes(self.rows, self.free, kinds, apart, regions)

    def assignment(self, placed: Iterable[Placement]) -> Assignment:
        """Of the kinds that were asked for, to nodes by name."""
        found: list[dict[str, int]] = [{} for _ in range(self._width)]
        left = [list(each.of) for each in self.kinds]
        for kind, row, count in placed:
            _deal(found, left[kind], self.nodes.rows.names[row], count)
        return tuple(found)


def rows_among(nodes: Nodes, among: Collection[str] | None) -> Mask:
    """By row; None: all."""
    if among is None:
        return np.ones(nodes.size, np.bool_)
    found: Mask = np.zeros(nodes.size, np.bool_)
    for name in among:
        row = nodes.rows.find(name)
        if row is not None:
            found[row] = True
    return found


def _with_equal_requests(asked: Sequence[PodsToPack]) -> list[tuple[tuple[int, int], ...]]:
    """Those that are asked for, by place and how many, in groups of equal requests."""
    found: list[tuple[tuple[int, int], ...]] = []
    for at, each in enumerate(asked):
        if each.count:
            for known, group in enumerate(found):
                request = asked[group[0][0]].request
                if request is each.request or request == each.request:
                    found[known] = (*group, (at, each.count))
                    break
            else:
                found.append(((at, each.count),))
    return found


def _alike(kinds: Sequence[AskedKind], related: set[int]) -> list[list[AskedKind]]:
    """Kinds without relations, of equal amounts and for the same nodes, in groups."""
    found: dict[object, list[AskedKind]] = {}
    for at, each in enumerate(kinds):
        key = at if at in related else (each.kind.amounts, each.kind.rows.tobytes())
        found.setdefault(key, []).append(each)
    return list(found.values())


def _by_size(groups: Sequence[list[AskedKind]], free: Amounts) -> list[list[AskedKind]]:
    """The largest first, by the largest share of what an average node has free."""
    average = np.maximum(free.mean(axis=0), 1) if len(free) else np.ones(free.shape[1])

    def share(group: list[AskedKind]) -> float:
        return float((np.array(group[0].kind.amounts, np.float64) / average).max())

    return sorted(groups, key=share, reverse=True)


def _together(group: Sequence[AskedKind]) -> AskedKind:
    first = group[0]
    count = sum(each.kind.count for each in group)
    of = tuple(one for each in group for one in each.of)
    return AskedKind(msgspec.structs.replace(first.kind, count=count), first.request, of)


def _deal(found: list[dict[str, int]], left: list[tuple[int, int]], node: str, count: int) -> None:
    """So many pods of a solver's kind to the node, from the first of those it stands for."""
    while count:
        at, most = left[0]
        given = min(most, count)
        found[at][node] = found[at].get(node, 0) + given
        count -= given
        if given == most:
            del left[0]
        else:
            left[0] = (at, most - given)
