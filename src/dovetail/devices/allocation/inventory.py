"""The book: the accounts, and where asks can be met.

Counts decide wherever they can, for all nodes at once. Where classes overlap, ask for a single
device or are nested, the assignment itself is tried, once for all nodes in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.rows import Rows
from dovetail.devices.allocation import shortage_text
from dovetail.devices.allocation.accounts import Accounts
from dovetail.devices.allocation.fit_cache import FitCache
from dovetail.devices.allocation.nested import is_searched_for
from dovetail.devices.allocation.node_devices import NodeDevices, Pairs, in_order, pairs, places_of
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.allocation.solver.choose import DeviceChooser
from dovetail.devices.allocation.solver.search import MOST_STEPS, SearchGivenUp
from dovetail.devices.allocation.strategies import Strategy, Worth, cheapness, fullness, worth_by

LEAST_STEPS = 200
"""With each node, however many others were too hard before it."""


class DeviceInventory(Accounts):
    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self._states, self._states_in_order = FitCache(), FitCache()
        self._worth: Worth = worth_by(())
        self._worth_at = -1

    def fits(
        self, asks: Sequence[DeviceRequest], strategy: Strategy = Strategy.FIRST_FIT
    ) -> NDArray[np.bool_]:
        """By row, whether `choose` finds devices there."""
        needs = _needs(asks)
        fit = np.ones(len(self._rows), np.bool_)
        for name, count in needs.items():
            fit &= self.free(name) >= count
        if not fit.any() or self._counts_decide(needs):
            return fit
        rows = np.flatnonzero(fit)
        strict = strategy is Strategy.STRICT_FIRST_FIT
        decisive = strategy if strict else Strategy.FIRST_FIT
        fit[rows] = np.isfinite(self._costs(rows, asks, decisive))
        return fit

    def _counts_decide(self, needs: dict[str, int]) -> bool:
        """Whether asks are met wherever there are units enough for each class by itself."""
        if any(is_searched_for(name, self._catalogue) for name in needs):
            return False
        if len(needs) <= 1:
            return True
        if any(self._catalogue[name].members for name in needs):
            return False
        return not self._shapes.overlap(self._catalogue.column(name) for name in needs)

    def score(self, asks: Sequence[DeviceRequest], strategy: Strategy) -> NDArray[np.float64]:
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
        self, rows: NDArray[np.int64], asks: Sequence[DeviceRequest], strategy: Strategy
    ) -> NDArray[np.float64]:
        """What the devices are worth that the strategy would use there; infinite: none would do.

        Rows have units enough for each class by itself.
        """
        strict = strategy is Strategy.STRICT_FIRST_FIT
        states, described = (self._states_in_order, in_order) if strict else (self._states, pairs)
        states.renew(self._shaping, len(self._stocks), len(self._rows))

        def state(row: int) -> Pairs:
            stock = self._stocks[self._rows.names[row]]
            return described(stock.shapes, stock.free)

        listed = [(each.class_name, each.count) for each in asks]
        worth = self._scarcity()
        question = (
            tuple(listed if strict else sorted(listed)),
            strategy,
            worth if strategy.weighs else None,
        )
        numbers = states.of_rows(rows, self._recounted_at, state)
        return states.answers(question, numbers, self._cost_of(asks, strategy, worth))

    def _cost_of(
        self, asks: Sequence[DeviceRequest], strategy: Strategy, worth: Worth
    ) -> Callable[[Pairs], float]:
        """Of a state. Those that differ only in what nobody asks for are worked out once."""
        chooser, mask = DeviceChooser(asks, strategy, worth, self._catalogue), self._mask(asks)
        known: dict[Pairs, float] = {}
        patience = MOST_STEPS

        def cost(state: Pairs) -> float:
            nonlocal patience
            listed = self._shapes.all
            asked = tuple(each for each in state if listed[each[0]].mask & mask)
            if asked not in known:
                places = places_of(asked, self._shapes, mask)
                try:
                    chosen = chooser.chosen(places, patience)
                except SearchGivenUp:
                    # Where one node is too hard most are, and all of them share what time there is.
                    chosen, patience = None, max(LEAST_STEPS, patience // 2)
                known[asked] = (
                    np.inf
                    if chosen is None
                    else float(sum(worth(places[at].mask) * units for at, _, units in chosen))
                )
            return known[asked]

        return cost

    def choose(
        self, node: str, asks: Sequence[DeviceRequest], strategy: Strategy = Strategy.FIRST_FIT
    ) -> tuple[DeviceHolding, ...] | None:
        """Devices of the node for all asks together; None if none were found."""
        try:
            return self._chosen(node, asks, strategy)
        except SearchGivenUp:
            return None

    def _chosen(
        self, node: str, asks: Sequence[DeviceRequest], strategy: Strategy
    ) -> tuple[DeviceHolding, ...] | None:
        """None if there are none. Raises TooHard."""
        self._settle()
        stock = self._stocks.get(node)
        if stock is None or not self._has_enough(stock, asks):
            return () if not asks else None
        devices, places = stock.open(self._mask(asks), self._shapes)
        chooser = DeviceChooser(asks, strategy, self._scarcity(), self._catalogue)
        chosen = chooser.chosen(places, MOST_STEPS)
        if chosen is None:
            return None
        return tuple(
            DeviceHolding(devices[at].name, units, asks[number].class_name, asks[number].container)
            for at, number, units in chosen
        )

    def _has_enough(self, stock: NodeDevices, asks: Sequence[DeviceRequest]) -> bool:
        free = self._counts.free[:, stock.row]
        return all(
            name in self._catalogue and free[self._catalogue.column(name)] >= count
            for name, count in _needs(asks).items()
        )

    def why_not(
        self,
        node: str,
        asks: Sequence[DeviceRequest],
        named: Callable[[str], str] = str,
        strategy: Strategy = Strategy.FIRST_FIT,
    ) -> str:
        """Why asks cannot be met there, in words; empty if they can. `named` puts holders so."""
        try:
            if self._chosen(node, asks, strategy) is not None:
                return ""
        except SearchGivenUp:
            return shortage_text.given_up(asks)
        stock = self._stocks.get(node)
        if stock is None:
            return f"node {node} has no devices"
        short = [
            self._shortage(stock, name, count, named)
            for name, count in _needs(asks).items()
            if name not in self._catalogue
            or self._counts.free[self._catalogue.column(name), stock.row] < count
        ]
        if short:
            return "; ".join(short)
        if strategy is Strategy.STRICT_FIRST_FIT and self.choose(node, asks) is not None:
            return shortage_text.strictly(asks)
        return shortage_text.together(asks, self._catalogue)

    def _shortage(
        self, stock: NodeDevices, name: str, count: int, named: Callable[[str], str]
    ) -> str:
        if name not in self._catalogue:
            return f"there is no class {name}"
        if self._catalogue.leaves(name) is None:
            return f"class {name} has a member that does not exist, goes in a circle or too deep"
        column, row = self._catalogue.column(name), stock.row
        mask = self._catalogue.mask(name)
        holders = dict.fromkeys(
            holder
            for device, shape in zip(stock.devices, stock.shapes, strict=True)
            if self._shapes.all[shape].mask & mask
            for holder in self._holders.line(stock.node, device.name)
        )
        units, free = int(self._counts.units[column, row]), int(self._counts.free[column, row])
        return shortage_text.shortage(name, count, units, free, [named(each) for each in holders])

    def _mask(self, asks: Iterable[DeviceRequest]) -> int:
        mask = 0
        for each in asks:
            mask |= self._catalogue.mask(each.class_name)
        return mask

    def _scarcity(self) -> Worth:
        if self._worth_at != self._hardware:
            self._settle()
            self._worth = worth_by(self._counts.total_units.tolist())
            self._worth_at = self._hardware
        return self._worth


def _needs(asks: Iterable[DeviceRequest]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in asks:
        found[each.class_name] = found.get(each.class_name, 0) + each.count
    return found
