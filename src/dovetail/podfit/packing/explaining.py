"""Why a set of pods does not fit: the first kind that is one too many, and the blocking node.

Packing has a proof when it comes here. What is left to find is where it fails: the most kinds, in
the order in which they were asked for, that fit in full, and the most of the next one beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from dovetail.core.explanation import Explanation
from dovetail.podfit.filtered_nodes import FilteredNodes
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack, Unpackable
from dovetail.podfit.packing.deciding import assignment_of
from dovetail.podfit.packing.question import rows_among
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.packing.supposing import supposed

SHARE = 8
"""Of the budget one attempt gets, as one over this."""

Attempt = Callable[[int], Assignment | None]
"""Where so many go; None: they do not fit. Raises BudgetSpent."""


class LargestThatFits(msgspec.Struct, frozen=True):
    at_least: int
    at_most: int
    assignment: Assignment
    """Of `at_least`."""


def largest_that_fits(attempt: Attempt, most: int, nothing: Assignment) -> LargestThatFits:
    """By bisection, since less fits where more does; nothing always does.

    First for the largest that fits, taking what is undecided for too much, then for the smallest
    that does not, taking it for little enough.
    """
    low, high, found, unsure = 0, most, nothing, False
    top = most
    while low < top:
        middle = (low + top + 1) // 2
        try:
            tried = attempt(middle)
        except BudgetSpent:
            top, unsure = middle - 1, True
            continue
        if tried is None:
            top = high = middle - 1
        else:
            low, found = middle, tried
    bottom = low
    while unsure and bottom < high:
        middle = (bottom + high + 1) // 2
        try:
            tried = attempt(middle)
        except BudgetSpent:
            bottom = middle
            continue
        if tried is None:
            high = middle - 1
        else:
            bottom = low = middle
            found = tried
    return LargestThatFits(low, high, found)


class Explaining:
    """One set of pods that does not fit."""

    def __init__(
        self,
        nodes: Nodes,
        asked: Sequence[PodsToPack],
        among: Collection[str] | None,
        budget: StepBudget,
    ) -> None:
        self._nodes, self._asked, self._among = nodes, asked, among
        self._budget, self._share = budget, budget.left // SHARE

    def unpackable(self) -> Unpackable:
        nothing: Assignment = ({},) * len(self._asked)
        whole = largest_that_fits(lambda kinds: self._attempt(kinds, 0), len(self._asked), nothing)
        kind = min(whole.at_least, len(self._asked) - 1)
        part = largest_that_fits(
            lambda count: self._attempt(kind, count), self._asked[kind].count, whole.assignment
        )
        is_most = whole.at_least == whole.at_most and part.at_least == part.at_most
        return self._explained(part.assignment, is_most=is_most)

    def _explained(self, assignment: Assignment, *, is_most: bool) -> Unpackable:
        rows = rows_among(self._nodes, self._among)
        while True:
            kind, fitting = self._first_not_full(assignment)
            with supposed(self._nodes, self._asked, assignment):
                filtered = FilteredNodes(self._nodes, self._asked[kind].request, among=rows)
                taking = np.flatnonzero(filtered.mask).tolist()
                if not taking:
                    return Unpackable(
                        kind=kind,
                        wanted=self._asked[kind].count,
                        fitting=fitting,
                        assignment=assignment,
                        explanation=self._explanation(kind, filtered),
                        is_most=is_most,
                    )
            # Only where the budget ended before the most was found.
            name = self._nodes.rows.names[taking[0]]
            more = {**assignment[kind], name: assignment[kind].get(name, 0) + 1}
            assignment = (*assignment[:kind], more, *assignment[kind + 1 :])

    def _explanation(self, kind: int, filtered: FilteredNodes) -> Explanation:
        """With nodes that would take one if they were idle as the nearest, if there are any: they
        are short of room, which the others may have since they are of no use."""
        found = filtered.explanation()
        idle = filtered.passing_if_idle()
        if idle.any():
            request = self._asked[kind].request
            nearest = FilteredNodes(self._nodes, request, among=idle).explanation().nearest
            found = msgspec.structs.replace(found, nearest=nearest)
        return found

    def _first_not_full(self, assignment: Assignment) -> tuple[int, int]:
        """The first kind that is not placed in full, and how many of it are."""
        for kind, (each, on) in enumerate(zip(self._asked, assignment, strict=True)):
            placed = sum(on.values())
            if placed < each.count:
                return kind, placed
        raise AssertionError("a proof that not all fit, and a way in which they do")

    def _attempt(self, kinds: int, more: int) -> Assignment | None:
        """So many kinds in full, and so many pods of the next one."""
        asked = [
            each if at < kinds else PodsToPack(each.request, more if at == kinds else 0)
            for at, each in enumerate(self._asked)
        ]
        part = self._budget.part(self._share)
        try:
            return assignment_of(self._nodes, asked, self._among, part)
        finally:
            self._budget.left -= part.spent
