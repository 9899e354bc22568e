"""Budget of a pick: steps that its search may take, so that it ends in time; counted, not timed.

What a search does spends of it: positions, labels of shortest paths, moves that are tried, and
joint scores that are asked for.
"""

from __future__ import annotations

STEPS = 50_000
"""About half a second."""


class PickBudgetSpent(Exception):
    """To go on would take longer than anybody should wait."""


class PickBudget:
    def __init__(self, steps: int = STEPS) -> None:
        self.left, self.spent = steps, 0

    def spend(self, steps: int = 1) -> None:
        """Raises PickBudgetSpent."""
        self.spent += steps
        self.left -= steps
        if self.left < 0:
            raise PickBudgetSpent
