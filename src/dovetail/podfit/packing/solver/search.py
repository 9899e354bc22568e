"""Depth first over maximal patterns, with bounds and a memory of failures: it decides.

Nodes come class by class, and each gets a pattern to which nothing that is left can be added (why
that is enough: `patterns`). A position is the class, how many of its nodes are left, and what is
left of each kind; how that came about makes no difference, so a position that failed once fails
always and is not looked at again, and so does one that any of the bounds refuses. Every step down
uses up a node, so it ends; the positions are exponential in kinds at worst, as bin packing is a
case of it, so steps are bounded by the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub

from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.prices import PriceBound
from dovetail.podfit.packing.solver.problem import Counts, Packing, StepBudget

SHORT_SEARCH = 1000
"""Steps that are enough for what is small."""

Position = tuple[int, int, Counts]
"""Class of nodes, how many of them are left, and what is left of each kind of pod."""


def search(
    counts: Counts,
    patterns: Sequence[NodePatterns],
    bounds: Sequence[PriceBound],
    budget: StepBudget,
) -> Packing | None:
    """A packing; None: there is none. Raises BudgetSpent."""
    if not all(each.allows(counts) for each in bounds):
        return None
    failed: set[Position] = set()
    start = _position(0, patterns[0].of.size, counts, patterns) if patterns else None
    if start is None:
        return None
    levels = [_Level(start, patterns, budget)]
    while levels:
        level = levels[-1]
        pattern = next(level.patterns, None)
        if pattern is None:
            failed.add(level.position)
            levels.pop()
            continue
        level.pattern = pattern
        at, nodes, left = level.position
        rest = tuple(map(sub, left, pattern))
        if not any(rest):
            return _packing(levels, len(patterns))
        below = _position(at, nodes - 1, rest, patterns)
        if below is None or below in failed:
            continue
        if all(each.allows(rest, below[0], below[1]) for each in bounds):
            levels.append(_Level(below, patterns, budget))
    return None


class _Level:
    """A position, and the patterns of its next node that were not tried yet."""

    __slots__ = ("pattern", "patterns", "position")

    def __init__(
        self, position: Position, patterns: Sequence[NodePatterns], budget: StepBudget
    ) -> None:
        self.position = position
        self.patterns: Iterator[Counts] = patterns[position[0]].maximal(position[2], budget)
        self.pattern: Counts = ()
        """The one that is being tried."""


def _position(
    at: int, nodes: int, left: Counts, patterns: Sequence[NodePatterns]
) -> Position | None:
    """The same, at the next node that can take anything; None: no node is left that can."""
    while True:
        if nodes and any(left[kind] and patterns[at].caps[kind] for kind in patterns[at].of.kinds):
            return at, nodes, left
        at += 1
        if at == len(patterns):
            return None
        nodes = patterns[at].of.size


def _packing(levels: Sequence[_Level], classes: int) -> Packing:
    found: list[dict[Counts, int]] = [{} for _ in range(classes)]
    for level in levels:
        at = level.position[0]
        found[at][level.pattern] = found[at].get(level.pattern, 0) + 1
    return tuple(tuple(each.items()) for each in found)
