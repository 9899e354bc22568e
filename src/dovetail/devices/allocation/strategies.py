"""Strategies: which of the devices that would do are taken, and which node is preferred.

All of them find an assignment wherever there is one, but for `strictFirstFit`: it takes requests
one by one, and never reconsiders. Among plain requests, those that weigh devices take the best set
of devices there is; around requests for a single device and nested classes they try the best first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dovetail.devices.allocation.solver.problem import DevicePlace

RAREST = 10**12
"""The weight of a class of which there is one unit; others weigh less, as they have more."""

Worth = Callable[[int], int]
"""What a unit is worth that the classes of a mask could have."""


class Strategy(StrEnum):
    FIRST_FIT = "firstFit"
    """Devices by kind and name."""
    STRICT_FIRST_FIT = "strictFirstFit"
    """The same, request by request: an earlier one never moves over for a later one."""
    BEST_FIT = "bestFit"
    """The device that fewest classes select, then that which has least left."""
    SPREAD = "spread"
    """The device that has most left."""
    SCARCE_AWARE = "scarceAware"
    """The device that rare classes need least."""

    @property
    def weighs(self) -> bool:
        """Whether it minds which devices are used, rather than who has to move over."""
        return self in (Strategy.BEST_FIT, Strategy.SPREAD, Strategy.SCARCE_AWARE)


def preference(strategy: Strategy, places: Sequence[DevicePlace], worth: Worth) -> list[int]:
    """Places from the most preferred; what is equal to the strategy stays in order."""
    numbers = range(len(places))
    if strategy is Strategy.BEST_FIT:
        return sorted(numbers, key=lambda at: (places[at].mask.bit_count(), places[at].free))
    if strategy is Strategy.SPREAD:
        return sorted(numbers, key=lambda at: -places[at].free)
    if strategy is Strategy.SCARCE_AWARE:
        return sorted(numbers, key=lambda at: worth(places[at].mask))
    return list(numbers)


def worth_by(allocatable: Sequence[int]) -> Worth:
    """Sums the scarcity of all classes of a mask, by what the fleet has of each.

    What the fleet has, not what is free: so it changes with the hardware only.
    """
    weights = [RAREST // units if units else 0 for units in allocatable]
    known: dict[int, int] = {}

    def worth(mask: int) -> int:
        if mask not in known:
            known[mask] = sum(weight for bit, weight in enumerate(weights) if mask >> bit & 1)
        return known[mask]

    return worth


def scores_by_units_left(left: NDArray[np.int64], strategy: Strategy) -> NDArray[np.float64]:
    """Scores from 0 to 1 by the units of the classes asked for that a node would have left."""
    units = np.maximum(left, 0).astype(np.float64)
    if strategy is Strategy.BEST_FIT:
        return 1.0 / (1.0 + units)
    if strategy is Strategy.SPREAD:
        return units / (1.0 + units)
    return np.zeros(len(left))


def scores_by_cost(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores from 0 to 1 by what the devices are worth that would be used; infinite: no fit."""
    least = float(costs.min(initial=np.inf))
    if least == np.inf:
        return np.zeros(len(costs))
    scores: NDArray[np.float64] = (1.0 + least) / (1.0 + costs)
    return scores
