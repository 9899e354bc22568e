"""The question as the solver sees it: kinds that are alike taken together, nodes in classes.

`packing` makes one of the table and what is asked, and reads the assignment off the solver's
answer with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.node_classes import ClassRows, PodKind, free_amounts, node_classes
from dovetail.podfit.packing.relations import Relations, relations_among, rows_for
from dovetail.podfit.packing.solver.problem import Packing, PackingProblem


class AskedKind(msgspec.Struct, frozen=True):
    """A kind of the solver, and which of those asked for it stands for, with how many of each."""

    kind: PodKind
    of: tuple[tuple[int, int], ...]


class Question:
    def __init__(
        self, nodes: Nodes, asked: Sequence[PodsToPack], among: Collection[str] | None
    ) -> None:
        self._nodes, self._width = nodes, len(asked)
        wanted = [(at, each) for at, each in enumerate(asked) if each.count]
        requests = [each.request for _, each in wanted]
        self.relations: Relations = relations_among(nodes, requests)
        names = dict.fromkeys(name for request in requests for name, _ in request.amounts)
        self._resources = tuple(names)
        chosen = rows_among(nodes, among)
        kinds = []
        for at, (place, each) in enumerate(wanted):
            rows = chosen & rows_for(nodes, each.request, self.relations, at)
            amounts = dict(each.request.amounts)
            kind = PodKind(each.count, tuple(amounts.get(name, 0) for name in names), rows)
            kinds.append(AskedKind(kind, ((place, each.count),)))
        every: Mask = np.zeros(nodes.size, np.bool_)
        for one in kinds:
            every |= one.kind.rows
        self.rows: Numbers = np.flatnonzero(every).astype(np.int32)
        self.free = free_amounts(nodes, self._resources, self.rows)
        self.kinds = by_size(alike(kinds), self.free)

    def problem(self) -> tuple[PackingProblem, list[ClassRows]]:
        kinds = [each.kind for each in self.kinds]
        marks: Amounts = np.zeros((len(self.rows), 1), np.int64)
        classes = node_classes(self.rows, self.free, kinds, (None,), marks)
        problem = PackingProblem(
            amounts=tuple(kind.amounts for kind in kinds),
            counts=tuple(kind.count for kind in kinds),
            classes=tuple(each.node_class for each in classes),
        )
        return problem, classes

    def assignment(self, packing: Packing, classes: Sequence[ClassRows]) -> Assignment:
        """Of the kinds that were asked for, to nodes by name."""
        found: list[dict[str, int]] = [{} for _ in range(self._width)]
        left = [list(each.of) for each in self.kinds]
        for each, patterns in zip(classes, packing, strict=True):
            rows = iter(each.rows)
            for pattern, size in patterns:
                for _ in range(size):
                    name = self._nodes.rows.names[next(rows)]
                    for kind, count in enumerate(pattern):
                        if count:
                            deal(found, left[kind], name, count)
        return tuple(found)


def deal(found: list[dict[str, int]], left: list[tuple[int, int]], node: str, count: int) -> None:
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


def alike(kinds: Sequence[AskedKind]) -> list[AskedKind]:
    """Kinds of equal amounts that go to the same nodes, taken together."""
    found: dict[object, AskedKind] = {}
    for each in kinds:
        key = (each.kind.amounts, each.kind.rows.tobytes())
        before = found.get(key)
        if before is not None:
            kind = msgspec.structs.replace(each.kind, count=before.kind.count + each.kind.count)
            found[key] = AskedKind(kind, before.of + each.of)
        else:
            found[key] = each
    return list(found.values())


def by_size(kinds: Sequence[AskedKind], free: Amounts) -> list[AskedKind]:
    """The largest first, by the largest share of what an average node has free."""
    average = np.maximum(free.mean(axis=0), 1) if len(free) else np.ones(free.shape[1])

    def share(each: AskedKind) -> float:
        return float((np.array(each.kind.amounts, np.float64) / average).max())

    return sorted(kinds, key=share, reverse=True)
