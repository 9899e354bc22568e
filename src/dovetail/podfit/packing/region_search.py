"""The search over regions: pods that demand something of each other, placed one after another.

`deciding` comes here if pods of the set keep apart, want to be near or are spread over domains of
several nodes. It is the definition, searched: from an empty layout, pods are put into regions one
by one, each where the filters accept it after those before it (`layouts`), and a layout with all of
them is the answer if the solver finds their nodes (`completion`). Three things make it small.

Regions that are alike are one step, and a layout that was reached before is not looked at again,
whatever the order was. Orders that gain nothing are left away (`stages`). And only pods whose
number makes a difference are placed one by one: those that count for a spread. Of others the rules
ask only whether any is in a domain. Of these the search places one where it would make a
difference, and the solver the rest, wherever the rules accept them in the end. Nothing is lost by
that: in an order that filters accept, leave away all pods of such a kind but the first of each
region, and it still is one, with the others to follow.

Each step places a pod, so it ends; layouts are exponential in regions that differ, so steps are
bounded by the budget. A region that cannot hold its pods ends the branch: that is decided by the
solver, for that region alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.podfit.packing.completion import Completion
from dovetail.podfit.packing.layouts import (
    Layout,
    LayoutRules,
    PodsInDomains,
    empty_layout,
    exchanged,
    total,
)
from dovetail.podfit.packing.question import Placement, Question
from dovetail.podfit.packing.regions import RegionMap
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.packing.stages import stages_of


class RegionSearch:
    def __init__(self, question: Question, regions: RegionMap, budget: StepBudget) -> None:
        self._regions, self._budget = regions, budget
        self._wanted = [each.kind.count for each in question.kinds]
        self._rules = LayoutRules(regions, len(self._wanted))
        self._one_by_one = {each.among.kind for each in regions.spread}
        self._one_by_one |= {kind for each in regions.spread for kind in each.among.counted}
        seen = {kind for _, one, other in regions.apart for kind in (one, other)}
        seen |= {kind for each in regions.near for kind in each.near.wanted}
        placed = seen | self._one_by_one
        stages = stages_of(question.relations)
        self._stages = [tuple(kind for kind in stage if kind in placed) for stage in stages]
        self._completion = Completion(question, regions, self._rules, budget)

    def run(self) -> list[Placement] | None:
        """None: the pods do not fit. Raises BudgetSpent."""
        is_sure = True
        seen: set[Layout] = set()
        levels: list[Iterator[Layout]] = [iter((empty_layout(self._regions, len(self._wanted)),))]
        while levels:
            layout = next(levels[-1], None)
            if layout is None:
                levels.pop()
                continue
            if layout in seen:
                continue
            seen.add(layout)
            self._budget.spend(sum(map(len, layout)))
            domains = PodsInDomains(self._rules, layout)
            left = self._left(layout)
            levels.append(self._steps(layout, domains, left))
            if not any(left[kind] for kind in self._one_by_one):
                try:
                    found = self._completion.placements(layout, domains, left)
                except BudgetSpent:
                    # Another layout may be easier.
                    is_sure = False
                    continue
                if found is not None:
                    return found
        if not is_sure:
            raise BudgetSpent
        return None

    def _left(self, layout: Layout) -> list[int]:
        placed = total(layout, len(self._wanted))
        return [wanted - there for wanted, there in zip(self._wanted, placed, strict=True)]

    def _steps(
        self, layout: Layout, domains: PodsInDomains, left: Sequence[int]
    ) -> Iterator[Layout]:
        """The layouts with one pod more, the most promising first."""
        steps = []
        for kind in self._next_kinds(left):
            for at, (region, groups) in enumerate(zip(self._regions.classes, layout, strict=True)):
                for content, _ in groups:
                    if self._is_of_use(kind, content[kind]) and domains.accepts(
                        kind, region, content
                    ):
                        level = sum(
                            domains.level(one, region, content)
                            for one in self._rules.of[kind].spread
                        )
                        room = self._completion.room(kind, at)
                        steps.append(((kind, level, -room), at, content))
        for (kind, _, _), at, content in sorted(steps):
            more = (*content[:kind], content[kind] + 1, *content[kind + 1 :])
            if self._completion.holds(at, more):
                yield exchanged(layout, at, content, more)

    def _is_of_use(self, kind: int, there: int) -> bool:
        return not there or kind in self._one_by_one

    def _next_kinds(self, left: Sequence[int]) -> Iterator[int]:
        """Of stages from the last one that was begun to the first that has to be finished."""
        begun = max(
            (
                at
                for at, stage in enumerate(self._stages)
                if any(left[kind] < self._wanted[kind] for kind in stage)
            ),
            default=0,
        )
        for stage in self._stages[begun:]:
            yield from (kind for kind in stage if left[kind])
            if any(left[kind] for kind in stage if kind in self._one_by_one):
                return
