"""Places of one node for the device solver: sets of them as bit masks, and flows over them.

Which places a class selects, and which agree in some keys, is worked out once per node and kept:
the search asks for the same sets in every position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dovetail.devices.allocation.solver.flow import Flow, UnitsByPlace
from dovetail.devices.allocation.solver.problem import DevicePlace, Keys

PlaceSet = int
"""A set of places: a bit for each."""


class FlowDemand(msgspec.Struct, frozen=True, gc=False):
    """Units that any of these places may give to a request."""

    request: int
    bit: int
    count: int
    places: PlaceSet


class Places:
    def __init__(self, places: Sequence[DevicePlace], keys: Iterable[Keys]) -> None:
        """In the order of preference; `keys`: all in which devices may have to agree."""
        self.places = places
        self.free = [each.free for each in places]
        self.all: PlaceSet = (1 << len(places)) - 1
        self._selected: dict[int, PlaceSet] = {}
        self._listed: dict[PlaceSet, list[int]] = {}
        self.values: dict[Keys, list[Keys | None]] = {
            each: [_value(place, each) for place in places] for each in keys
        }
        """By place; None if the device lacks one of the keys: it then agrees with no other."""

    def selected_by(self, bit: int) -> PlaceSet:
        """By the class of that bit."""
        if bit not in self._selected:
            numbered = enumerate(self.places)
            self._selected[bit] = sum(1 << at for at, each in numbered if each.mask & bit)
        return self._selected[bit]

    def numbers_in(self, places: PlaceSet) -> list[int]:
        """In ascending order."""
        found = self._listed.get(places)
        if found is None:
            found = [at for at in range(places.bit_length()) if places >> at & 1]
            self._listed[places] = found
        return found

    def with_value(self, places: PlaceSet, keys: Keys) -> PlaceSet:
        """Those that have all of the keys."""
        values = self.values[keys]
        return sum(1 << at for at in self.numbers_in(places) if values[at] is not None)

    def by_value(self, places: PlaceSet, keys: Keys | None) -> list[PlaceSet]:
        """Apart by value, or one by one; in the order of preference."""
        if keys is None:
            return [1 << at for at in self.numbers_in(places)]
        values = self.values[keys]
        found: dict[Keys | None, PlaceSet] = {}
        for at in self.numbers_in(places):
            found[values[at]] = found.get(values[at], 0) | 1 << at
        return list(found.values())

    def all_of_value(self, places: PlaceSet, keys: Keys | None) -> PlaceSet:
        """All there are of the one value that these places have."""
        if keys is None:
            return places
        values = self.values[keys]
        value = values[places.bit_length() - 1]
        return sum(1 << at for at, other in enumerate(values) if other == value)

    def flow(self, demands: Sequence[FlowDemand], *, cheapest: bool) -> list[UnitsByPlace] | None:
        """What each demand takes; None if they cannot all be met."""
        flow = Flow(self.free, cheapest=cheapest)
        for each in demands:
            if not flow.add(self.numbers_in(each.places), each.count):
                return None
        return flow.takes


def _value(place: DevicePlace, keys: Keys) -> Keys | None:
    found = tuple(place.attributes[key] for key in keys if key in place.attributes)
    return found if len(found) == len(keys) else None
