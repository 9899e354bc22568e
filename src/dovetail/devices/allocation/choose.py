"""Device chooser: calls the solver for the places of one node that the requests get, by strategy.

The device inventory asks it for the node that is picked, the fit cache for each state of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.nested import bundles_of
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.problem import Bundle, DevicePlace
from dovetail.devices.allocation.solver.search import SearchGivenUp, assign
from dovetail.devices.allocation.strategies import Strategy, Worth, preference

Assignment = list[tuple[int, int, int]]
"""Places, the requests that use them, and the units of each; by request, then by place."""


class DeviceChooser:
    """Chooses for these requests, on as many nodes as one likes."""

    def __init__(
        self,
        requests: Sequence[DeviceRequest],
        strategy: Strategy,
        worth: Worth,
        classes: ClassColumns,
    ) -> None:
        """Every class has to be whole."""
        self._strategy, self._worth = strategy, worth
        self._bundles = bundles_of(requests, classes)

    def choose(self, places: Sequence[DevicePlace], most_steps: int) -> Assignment | None:
        """None: the strategy finds nothing there. Raises SearchGivenUp."""
        if self._strategy is Strategy.STRICT_FIRST_FIT:
            return self._one_by_one(places, most_steps)
        weighs = self._strategy.weighs
        order = preference(self._strategy, places, self._worth)
        try:
            return _assignment(places, order, self._bundles, most_steps, cheapest=weighs)
        except SearchGivenUp:
            # In the order in which nodes are compared: what was found when this one was said to fit
            # is found again, however its devices are called and whichever the strategy likes.
            plain = sorted(order, key=lambda at: (places[at].equivalence, places[at].free))
            if plain == order and not weighs:
                raise
            return _assignment(places, plain, self._bundles, most_steps, cheapest=False)

    def _one_by_one(self, places: Sequence[DevicePlace], most_steps: int) -> Assignment | None:
        left = list(places)
        found: Assignment = []
        for request, bundle in enumerate(self._bundles):
            taken = _assignment(left, range(len(left)), [bundle], most_steps, cheapest=False)
            if taken is None:
                return None
            for at, _, units in taken:
                found.append((at, request, units))
                left[at] = msgspec.structs.replace(left[at], free=left[at].free - units)
        return found


def _assignment(
    places: Sequence[DevicePlace],
    order: Sequence[int],
    bundles: Sequence[Bundle],
    most_steps: int,
    *,
    cheapest: bool,
) -> Assignment | None:
    ordered = [places[at] for at in order]
    takes = assign(ordered, bundles, cheapest=cheapest, most_steps=most_steps)
    if takes is None:
        return None
    return [
        (at, request, units)
        for request, taken in enumerate(takes)
        for at, units in sorted((order[index], units) for index, units in taken.items())
    ]
