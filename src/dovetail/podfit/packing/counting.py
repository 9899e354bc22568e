"""How much fits: the largest number, of kinds or of pods of a kind, for which there is a packing.

`most` asks it for a forecast, and explanations for where a set is one too many. Numbers are tried
by bisection where less fits whenever more does. That is so unless another kind looks at the pods
that become fewer, to be near them or to be spread with them: then small numbers are tried one by
one, and of large ones it is left open whether a larger one fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.deciding import assignment_of
from dovetail.podfit.packing.node_classes import free_amounts
from dovetail.podfit.packing.question import rows_among
from dovetail.podfit.packing.relations import relations_among, rows_for
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.pod_request import PodRequest

SHARE = 8
"""Of the budget one attempt gets, as one over this."""
TRIED_ONE_BY_ONE = 16

Attempt = Callable[[int], Assignment | None]
"""Where so many go; None: they do not fit. Raises BudgetSpent."""


class LargestThatFits(msgspec.Struct, frozen=True):
    at_least: int
    at_most: int
    assignment: Assignment
    """Of `at_least`."""


def by_bisection(attempt: Attempt, most: int, nothing: Assignment) -> LargestThatFits:
    """The largest number up to `most`, if less fits whenever more does; nothing fits always.

    All of it is tried before the middle, as it is often the answer. First the largest that fits,
    taking what is undecided for too much, then the smallest that does not, taking it for little
    enough.
    """
    low, high, found, is_sure = 0, most, nothing, True
    top = middle = most
    while low < top:
        try:
            tried = attempt(middle)
        except BudgetSpent:
            top, is_sure = middle - 1, False
        else:
            if tried is None:
                top = high = middle - 1
            else:
                low, found = middle, tried
        middle = (low + top + 1) // 2
    bottom = low
    while not is_sure and bottom < high:
        middle = (bottom + high + 1) // 2
        try:
            tried = attempt(middle)
        except BudgetSpent:
            bottom = middle
            continue
        if tried is None:
            high = middle - 1
        else:
            low = bottom = middle
            found = tried
    return LargestThatFits(low, high, found)


def one_by_one(attempt: Attempt, most: int, nothing: Assignment) -> LargestThatFits:
    """The largest number up to `most`, whether or not less fits; nothing fits always."""
    high = 0
    for number in range(most, 0, -1):
        try:
            tried = attempt(number)
        except BudgetSpent:
            high = max(high, number)
            continue
        if tried is not None:
            return LargestThatFits(number, max(high, number), tried)
    return LargestThatFits(0, high, nothing)


class Attempts:
    """Sets of pods that are tried on the same nodes, within one budget."""

    def __init__(self, nodes: Nodes, among: Collection[str] | None, budget: StepBudget) -> None:
        self.nodes, self._among = nodes, among
        self._budget, self._share = budget, budget.left // SHARE
        self.rows = rows_among(nodes, among)

    def assignment(self, asked: Sequence[PodsToPack]) -> Assignment | None:
        """None: they do not fit. Raises BudgetSpent."""
        with self._budget.part(self._share) as part:
            return assignment_of(self.nodes, asked, self._among, part)

    def kinds(self, asked: Sequence[PodsToPack]) -> LargestThatFits:
        """How many kinds fit in full, of those at the front; all of them do not."""
        ahead = any(at < other for at, other in self._looks(asked))
        find = one_by_one if ahead else by_bisection
        nothing: Assignment = ({},) * len(asked)
        return find(lambda kinds: self.assignment(_first(asked, kinds)), len(asked) - 1, nothing)

    def pods(
        self, asked: Sequence[PodsToPack], kind: int, most: int, fitting: Assignment
    ) -> LargestThatFits:
        """How many of a kind, up to `most`, fit beside the kinds before it; none of it does as in
        `fitting`."""
        is_watched = self.is_watched(asked, kind)
        find = one_by_one if is_watched and most <= TRIED_ONE_BY_ONE else by_bisection
        found = find(lambda count: self.assignment(_first(asked, kind, count)), most, fitting)
        if is_watched and find is by_bisection:
            return msgspec.structs.replace(found, at_most=most)
        return found

    def is_watched(self, asked: Sequence[PodsToPack], kind: int) -> bool:
        """Whether a kind before it looks at it: more of it may fit where less does not."""
        return any(at < kind and other == kind for at, other in self._looks(asked[: kind + 1]))

    def room(self, asked: Sequence[PodsToPack], request: PodRequest) -> int:
        """More of it do not fit beside the others, however these are placed."""
        requests = [*(each.request for each in asked), request]
        relations = relations_among(self.nodes, requests)
        taking = self.rows & rows_for(self.nodes, request, relations, len(asked))
        rows = np.flatnonzero(taking).astype(np.int32)
        free = free_amounts(self.nodes, [name for name, _ in request.amounts], rows)
        each = free // np.array([amount for _, amount in request.amounts], np.int64)
        return int(each.min(axis=1).sum()) if len(rows) else 0

    def _looks(self, asked: Sequence[PodsToPack]) -> set[tuple[int, int]]:
        return relations_among(self.nodes, [each.request for each in asked]).looks()


def _first(asked: Sequence[PodsToPack], kinds: int, more: int = 0) -> list[PodsToPack]:
    """So many kinds in full, and so many pods of the next one."""
    return [
        each if at < kinds else PodsToPack(each.request, more if at == kinds else 0)
        for at, each in enumerate(asked)
    ]
