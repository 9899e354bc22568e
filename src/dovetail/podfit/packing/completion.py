"""Completion of a layout: the nodes for pods that are in regions, and for all that are left.

The search over regions asks it whether a region holds its pods, and for the answer in the end. Both
are questions for the solver, without relations but those of one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from dovetail.podfit.packing.layouts import Layout, LayoutRules, PodsInDomains
from dovetail.podfit.packing.question import Placement, Question
from dovetail.podfit.packing.regions import Region, RegionClass, RegionMap
from dovetail.podfit.packing.solver.problem import (
    BudgetSpent,
    Counts,
    NodeClass,
    Packing,
    PackingProblem,
    StepBudget,
)
from dovetail.podfit.packing.solver.solve import solve

SHARE = 4
"""Of what is left of the budget one layout gets, as one over this."""


def placements_of(packing: Packing, rows: Sequence[Sequence[int]]) -> Iterator[Placement]:
    """`rows`: of the nodes, by class."""
    for patterns, members in zip(packing, rows, strict=True):
        at = iter(members)
        for pattern, size in patterns:
            for _ in range(size):
                row = next(at)
                yield from ((kind, row, count) for kind, count in enumerate(pattern) if count)


class Completion:
    def __init__(
        self, question: Question, regions: RegionMap, rules: LayoutRules, budget: StepBudget
    ) -> None:
        self._regions, self._rules, self._budget = regions, rules, budget
        self._amounts = tuple(each.kind.amounts for each in question.kinds)
        self._held: dict[tuple[int, Counts], Packing | None] = {}
        self._rooms: dict[tuple[int, int], int] = {}

    def room(self, kind: int, at: int) -> int:
        """How many of a kind alone a region of that class holds at most."""
        key = (kind, at)
        if key not in self._rooms:
            amounts = self._amounts[kind]
            self._rooms[key] = sum(
                each.size
                * min(has // wants for has, wants in zip(each.free, amounts, strict=True) if wants)
                for each in self._regions.classes[at].nodes
                if kind in each.kinds
            )
        return self._rooms[key]

    def holds(self, at: int, content: Counts) -> bool:
        """Whether a region of that class has nodes for this, as far as it can be told."""
        try:
            return self._packing(at, content) is not None
        except BudgetSpent:
            return True

    def _packing(self, at: int, content: Counts) -> Packing | None:
        key = (at, content)
        if key not in self._held:
            nodes = self._regions.classes[at].nodes
            self._held[key] = self._solve(PackingProblem(self._amounts, content, nodes))
        return self._held[key]

    def _solve(self, problem: PackingProblem) -> Packing | None:
        with self._budget.part(self._budget.left // SHARE) as part:
            return solve(problem, part)

    def placements(
        self, layout: Layout, domains: PodsInDomains, left: Sequence[int]
    ) -> list[Placement] | None:
        """Nodes for the pods of a layout and for those that are left; None: there are none.

        Raises BudgetSpent.
        """
        rest = _RestOfSet(self._amounts, left)
        found: list[Placement] = []
        for at, (region, groups) in enumerate(zip(self._regions.classes, layout, strict=True)):
            regions = iter(region.regions)
            for content, size in groups:
                members = list(islice(regions, size))
                kinds = [
                    kind
                    for kind, count in enumerate(left)
                    if count and self._is_open(kind, region, content, domains)
                ]
                if kinds and region.is_one_node:
                    found += rest.add_nodes_with(content, members, kinds)
                elif kinds:
                    rest.add_regions(content, members, kinds)
                elif any(content):
                    packing = self._packing(at, content)
                    if packing is None:
                        return None
                    for each in members:
                        found += placements_of(packing, [one.rows for one in each.classes])
        for nodes in self._regions.elsewhere:
            rest.add_nodes(nodes.node_class, nodes.rows, nodes.node_class.kinds)
        packing = self._solve(rest.problem())
        return None if packing is None else [*found, *rest.placements(packing)]

    def _is_open(
        self, kind: int, region: RegionClass, content: Counts, domains: PodsInDomains
    ) -> bool:
        """Whether any number of pods of the kind may come to a region with that content, without a
        difference to other kinds: where they keep apart from others, one of them is there."""
        rules = self._rules.of[kind]
        return all(
            not region.domains[at]
            or (
                domains.has(kind, at, region, content)
                and not domains.has(other, at, region, content)
            )
            for at, other in rules.apart
        ) and all(domains.is_near(at, region, content) for at in rules.near)


class _RestOfSet:
    """The problem that is left when regions have their pods: these as kinds that stay in their
    region, and all others as before."""

    def __init__(self, amounts: Sequence[tuple[int, ...]], left: Sequence[int]) -> None:
        self._kinds = list(range(len(left)))
        """By kind of the problem, which it is of the set."""
        self._amounts, self._counts = amounts, list(left)
        self._rows: dict[tuple[NodeClass, tuple[int, ...]], list[int]] = {}
        """Of nodes that are alike: but for the size, of a class, and for the same kinds."""

    def add_nodes(self, of: NodeClass, rows: Sequence[int], kinds: Sequence[int]) -> None:
        alike = msgspec.structs.replace(of, size=1)
        self._rows.setdefault((alike, tuple(kinds)), []).extend(rows)

    def add_nodes_with(
        self, content: Counts, regions: Sequence[Region], kinds: Sequence[int]
    ) -> Iterator[Placement]:
        """Regions of one node, which has the content."""
        of = regions[0].classes[0].node_class
        free = list(of.free)
        there = 0
        for kind, count in enumerate(content):
            if count:
                there |= 1 << kind
                for at, amount in enumerate(self._amounts[kind]):
                    free[at] -= amount * count
        fitting = [kind for kind in kinds if of.apart is None or not of.apart[kind] & there]
        less = msgspec.structs.replace(of, free=tuple(free))
        rows = [each.classes[0].rows[0] for each in regions]
        self.add_nodes(less, rows, [kind for kind in fitting if kind in of.kinds])
        for row in rows:
            yield from ((kind, row, count) for kind, count in enumerate(content) if count)

    def add_regions(self, content: Counts, regions: Sequence[Region], kinds: Sequence[int]) -> None:
        """Regions of several nodes, each of which has the content."""
        for region in regions:
            staying = []
            for kind, count in enumerate(content):
                if count:
                    staying.append(len(self._kinds))
                    self._kinds.append(kind)
                    self._counts.append(count)
            for each in region.classes:
                of = each.node_class
                here = [one for one in (*kinds, *staying) if self._kinds[one] in of.kinds]
                self.add_nodes(of, each.rows, here)

    def problem(self) -> PackingProblem:
        return PackingProblem(
            amounts=tuple(self._amounts[kind] for kind in self._kinds),
            counts=tuple(self._counts),
            classes=tuple(
                NodeClass(len(rows), of.free, kinds, self._apart(of.apart))
                for (of, kinds), rows in self._rows.items()
            ),
        )

    def _apart(self, apart: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if apart is None or len(apart) == len(self._kinds):
            return apart
        return tuple(
            sum(1 << at for at, other in enumerate(self._kinds) if apart[kind] >> other & 1)
            for kind in self._kinds
        )

    def placements(self, packing: Packing) -> Iterator[Placement]:
        for kind, row, count in placements_of(packing, list(self._rows.values())):
            yield self._kinds[kind], row, count
