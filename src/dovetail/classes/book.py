"""The book: the accounts, and where asks can be met.

Counts decide wherever they can, for all nodes at once. Where classes overlap, ask for a single
device or are nested, the assignment itself is tried, once for all nodes in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.classes import words
from dovetail.classes.accounts import Accounts
from dovetail.classes.arrays import Ints
from dovetail.classes.asks import Ask, Holding
from dovetail.classes.assign import Place, Problem, assign
from dovetail.classes.nested import problem_of
from dovetail.classes.states import States
from dovetail.classes.stock import Pairs, Stock, pairs, places_of
from dovetail.classes.strategies import (
    Strategy,
    Weigh,
    cheapness,
    fullness,
    preference,
    worth_by,
)
from dovetail.core.rows import Rows

UNKNOWN = -1


class Book(Accounts):
    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self._states = States()
        self._state_of: Ints = np.zeros(0, np.int64)
        self._states_at = -1
        self._worth: Weigh = worth_by(())
        self._worth_at = -1

    def fits(
        self, asks: Sequence[Ask], strategy: Strategy = Strategy.FIRST_FIT
    ) -> NDArray[np.bool_]:
        """By row, whether `choose` finds devices there."""
        needs = _needs(asks)
        fit = np.ones(len(self._rows), np.bool_)
        for name, count in needs.items():
            fit &= self.free(name) >= count
        if self._counts_decide(needs) or not fit.any():
            return fit
        rows = np.flatnonzero(fit)
        if strategy is Strategy.STRICT_FIRST_FIT:
            names = [self._rows.names[row] for row in rows.tolist()]
            fit[rows] = [self.choose(name, asks, strategy) is not None for name in names]
        else:
            fit[rows] = np.isfinite(self._costs(rows, asks, Strategy.FIRST_FIT))
        return fit

    def _counts_decide(self, needs: dict[str, int]) -> bool:
        """Whether asks are met wherever there are units enough for each class by itself."""
        classes = [self._catalogue.get(name) for name in needs]
        if any(cls is None or cls.single_device for cls in classes):
            return False
        if len(needs) <= 1:
            return True
        if any(cls is not None and cls.members for cls in classes):
            return False
        return not self._shapes.overlap(self._catalogue.column(name) for name in needs)

    def score(self, asks: Sequence[Ask], strategy: Strategy) -> NDArray[np.float64]:
        """By row, how much the strategy likes it: 0 to 1, and of use only where asks fit."""
        needs = _needs(asks)
        if strategy is not Strategy.SCARCE_AWARE:
            left = np.zeros(len(self._rows), np.int64)
            for name, count in needs.items():
                left += self.free(name) - count
            return fullness(left, strategy)
        scores = np.zeros(len(self._rows))
        enough = np.ones(len(self._rows), np.bool_)
        for name, count in needs.items():
            enough &= self.free(name) >= count
        rows = np.flatnonzero(enough)
        if needs and len(rows):
            scores[rows] = cheapness(self._costs(rows, asks, strategy))
        return scores

    def _costs(
        self, rows: NDArray[np.int64], asks: Sequence[Ask], strategy: Strategy
    ) -> NDArray[np.float64]:
        """What the devices are worth that the strategy would use there; infinite: none would do.

        Rows have units enough for each class by itself.
        """
        self._number_states(rows)
        listed = tuple(sorted((each.class_name, each.count) for each in asks))
        worth = self._scarcity()
        question = (listed, strategy, worth if strategy.weighs else None)
        problem, mask = problem_of(asks, self._catalogue), self._mask(asks)

        def cost(state: Pairs) -> float:
            places = places_of(state, self._shapes, mask)
            taken = _assigned(places, problem, strategy, worth)
            if taken is None:
                return np.inf
            return float(sum(worth(places[at].mask) * units for at, _, units in taken))

        return self._states.answers(question, self._state_of[rows], cost)

    def _number_states(self, rows: NDArray[np.int64]) -> None:
        if self._states_at != self._shaping or self._states.is_crowded(len(self._stocks)):
            self._states.clear()
            self._state_of = np.full(len(self._rows), UNKNOWN)
            self._states_at = self._shaping
        elif len(self._state_of) < len(self._rows):
            added = np.full(len(self._rows) - len(self._state_of), UNKNOWN)
            self._state_of = np.append(self._state_of, added)
        self._state_of[list(self._recounted)] = UNKNOWN
        self._recounted.clear()
        for row in rows[self._state_of[rows] == UNKNOWN].tolist():
            stock = self._stocks[self._rows.names[row]]
            self._state_of[row] = self._states.number(pairs(stock.shapes, stock.free))

    def choose(
        self, node: str, asks: Sequence[Ask], strategy: Strategy = Strategy.FIRST_FIT
    ) -> tuple[Holding, ...] | None:
        """Devices of the node for all asks together; None if there are none."""
        self._settle()
        stock = self._stocks.get(node)
        if stock is None or not self._has_enough(stock, asks):
            return () if not asks else None
        devices, places = stock.open(self._mask(asks), self._shapes)
        rounds = [[each] for each in asks] if strategy is Strategy.STRICT_FIRST_FIT else [asks]
        found: list[Holding] = []
        for together in rounds:
            problem = problem_of(together, self._catalogue)
            taken = _assigned(places, problem, strategy, self._scarcity())
            if taken is None:
                return None
            for at, number, units in taken:
                ask, place = together[number], places[at]
                found.append(Holding(devices[at].name, units, ask.class_name, ask.container))
                places[at] = Place(place.shape, place.mask, place.attributes, place.free - units)
        return tuple(found)

    def _has_enough(self, stock: Stock, asks: Sequence[Ask]) -> bool:
        free = self._counts.free[:, stock.row]
        return all(
            name in self._catalogue and free[self._catalogue.column(name)] >= count
            for name, count in _needs(asks).items()
        )

    def why_not(self, node: str, asks: Sequence[Ask], named: Callable[[str], str] = str) -> str:
        """Why asks cannot be met there, in words; empty if they can. `named` puts holders so."""
        self._settle()
        if self.choose(node, asks) is not None:
            return ""
        stock = self._stocks.get(node)
        if stock is None:
            return f"node {node} has no devices"
        short = [
            self._shortage(stock, name, count, named)
            for name, count in _needs(asks).items()
            if name not in self._catalogue
            or self._counts.free[self._catalogue.column(name), stock.row] < count
        ]
        return "; ".join(short) or words.together(asks, self._catalogue)

    def _shortage(self, stock: Stock, name: str, count: int, named: Callable[[str], str]) -> str:
        if name not in self._catalogue:
            return f"there is no class {name}"
        if self._catalogue.leaves(name) is None:
            return f"class {name} has a member that does not exist, or is part of itself"
        column, row = self._catalogue.column(name), stock.row
        mask = self._catalogue.mask(name)
        holders = dict.fromkeys(
            holder
            for device, shape in zip(stock.devices, stock.shapes, strict=True)
            if self._shapes.all[shape].mask & mask
            for holder in self._holders.line(stock.node, device.name)
        )
        units, free = int(self._counts.units[column, row]), int(self._counts.free[column, row])
        return words.shortage(name, count, units, free, [named(each) for each in holders])

    def _mask(self, asks: Iterable[Ask]) -> int:
        mask = 0
        for each in asks:
            mask |= self._catalogue.mask(each.class_name)
        return mask

    def _scarcity(self) -> Weigh:
        if self._worth_at != self._hardware:
            self._settle()
            self._worth = worth_by(self._counts.total_units.tolist())
            self._worth_at = self._hardware
        return self._worth


def _assigned(
    places: Sequence[Place], problem: Problem, strategy: Strategy, worth: Weigh
) -> list[tuple[int, int, int]] | None:
    """Places, the asks that use them, and the units of each; ask by ask, place by place."""
    order = preference(strategy, places, worth)
    takes = assign([places[at] for at in order], problem, cheapest=strategy.weighs)
    if takes is None:
        return None
    units: dict[tuple[int, int], int] = {}
    for demand, taken in zip(problem.demands, takes, strict=True):
        for index, count in taken.items():
            key = (demand.ask, order[index])
            units[key] = units.get(key, 0) + count
    return [(at, ask, count) for (ask, at), count in sorted(units.items())]


def _needs(asks: Iterable[Ask]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in asks:
        found[each.class_name] = found.get(each.class_name, 0) + each.count
    return found
