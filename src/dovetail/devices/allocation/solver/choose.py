"""Which places of one node the asks get, as the strategy has it."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.devices.allocation.catalogue import Catalogue
from dovetail.devices.allocation.nested import wishes_of
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.problem import Bundle, DevicePlace
from dovetail.devices.allocation.solver.search import SearchGivenUp, assign
from dovetail.devices.allocation.strategies import Strategy, Worth, preference

Assignment = list[tuple[int, int, int]]
"""Places, the asks that use them, and the units of each; ask by ask, place by place."""


class DeviceChooser:
    """Chooses for these asks, on as many nodes as one likes."""

    def __init__(
        self, asks: Sequence[DeviceRequest], strategy: Strategy, worth: Worth, catalogue: Catalogue
    ) -> None:
        """Every class has to be whole."""
        self._strategy, self._worth = strategy, worth
        self._wishes = wishes_of(asks, catalogue)

    def chosen(self, places: Sequence[DevicePlace], patience: int) -> Assignment | None:
        """None: the strategy finds nothing there. Raises TooHard."""
        if self._strategy is Strategy.STRICT_FIRST_FIT:
            return self._one_by_one(places, patience)
        weighs = self._strategy.weighs
        order = preference(self._strategy, places, self._worth)
        try:
            return _assigned(places, order, self._wishes, patience, cheapest=weighs)
        except SearchGivenUp:
            # In the order in which nodes are compared: what was found when this one was said to fit
            # is found again, however its devices are called and whichever the strategy likes.
            plain = sorted(order, key=lambda at: (places[at].shape, places[at].free))
            if plain == order and not weighs:
                raise
            return _assigned(places, plain, self._wishes, patience, cheapest=False)

    def _one_by_one(self, places: Sequence[DevicePlace], patience: int) -> Assignment | None:
        left = list(places)
        found: Assignment = []
        for ask, wish in enumerate(self._wishes):
            taken = _assigned(left, range(len(left)), [wish], patience, cheapest=False)
            if taken is None:
                return None
            for at, _, units in taken:
                found.append((at, ask, units))
                place = left[at]
                left[at] = DevicePlace(
                    place.shape, place.mask, place.attributes, place.free - units
                )
        return found


def _assigned(
    places: Sequence[DevicePlace],
    order: Sequence[int],
    wishes: Sequence[Bundle],
    patience: int,
    *,
    cheapest: bool,
) -> Assignment | None:
    ordered = [places[at] for at in order]
    takes = assign(ordered, wishes, cheapest=cheapest, patience=patience)
    if takes is None:
        return None
    return [
        (at, ask, units)
        for ask, taken in enumerate(takes)
        for at, units in sorted((order[index], units) for index, units in taken.items())
    ]
