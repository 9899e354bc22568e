"""The problem that the packing solver is given: kinds of pods, classes of nodes, and a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

Counts = tuple[int, ...]
"""How many of each kind of pod; on one node, its pattern."""
Packing = tuple[tuple[tuple[Counts, int], ...], ...]
"""By class of nodes: patterns, and how many of its nodes have each. The rest stays as it is."""


class NodeClass(msgspec.Struct, frozen=True, gc=False):
    """Nodes that are the same to every kind of pod."""

    size: int
    """How many there are."""
    free: tuple[int, ...]
    """By resource; nothing is below zero."""
    kinds: tuple[int, ...]
    """That may go there, in ascending order."""
    apart: tuple[int, ...] | None = None
    """By kind, a bit for each that cannot be on one node with it: its own, if one of them is all
    that a node takes. None: there are none."""


class PackingProblem(msgspec.Struct, frozen=True, gc=False):
    amounts: tuple[tuple[int, ...], ...]
    """By kind and resource. Kinds stand in the order in which they are hard to place."""
    counts: Counts
    classes: tuple[NodeClass, ...]


class BudgetSpent(Exception):
    """To decide it would take more steps than were allowed."""


class StepBudget:
    """Steps that a search may still take: counted, not timed, so that answers can be repeated."""

    def __init__(self, steps: int) -> None:
        self._steps = self.left = steps

    @property
    def spent(self) -> int:
        return self._steps - max(self.left, 0)

    def spend(self, steps: int = 1) -> None:
        """Raises BudgetSpent."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

    @contextmanager
    def part(self, steps: int) -> Iterator[StepBudget]:
        """One for a part of the work, with so many steps or what is left; spent here as well."""
        part = StepBudget(min(steps, max(self.left, 0)))
        try:
            yield part
        finally:
            self.left -= part.spent
