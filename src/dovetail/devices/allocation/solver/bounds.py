"""Bounds of the device solver: how many sets of a bundle fit where, whatever becomes of the rest.

The search asks before it goes on from a partial assignment. Each bound looks at one bundle, or one
size of requests for single devices, and leaves away all that is still open besides: a relaxation.
So what a bound calls impossible is impossible, and what it lets pass may still be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import msgspec

from dovetail.devices.allocation.solver.places import FlowDemand, Places, PlaceSet
from dovetail.devices.allocation.solver.problem import Bundle, units_of


class OpenBundle(msgspec.Struct, frozen=True):
    """A bundle; so many of its sets are to be given values, among those of the places."""

    request: int
    bundle: Bundle
    count: int
    places: PlaceSet
    family: int
    """Of those of one family each can have what another got."""
    depth: int
    most: Mapping[object, int] = {}
    """By kind of value: what the last of that kind got."""

    @property
    def size(self) -> int:
        """What one set wants of a single device."""
        return self.bundle.demands[0].count

    @property
    def order(self) -> tuple[int, int, int]:
        """From the outside in; single devices last, and of these the largest demands first."""
        if self.bundle.same is not None:
            return (0, self.depth, self.family)
        return (1, -self.size, self.family)


class PartialAssignment(msgspec.Struct, frozen=True):
    """A node of the search tree: what is decided, and what is not."""

    fixed: tuple[FlowDemand, ...]
    open: tuple[OpenBundle, ...]


class Bounds:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._units: dict[Bundle, dict[int, int]] = {}
        self._useful: dict[tuple[Bundle, PlaceSet], PlaceSet] = {}
        self._known: dict[object, int] = {}

    def units_of(self, bundle: Bundle) -> Mapping[int, int]:
        """Units of one set, by the bit of their class."""
        if bundle not in self._units:
            self._units[bundle] = units_of(bundle)
        return self._units[bundle]

    def units_left(self, fixed: Sequence[FlowDemand]) -> list[int]:
        """Of each device, without what it has to give for sure."""
        left = list(self._places.free)
        for each in fixed:
            # A demand that only one place may meet: its bit is the only one.
            if not each.places & (each.places - 1):
                left[each.places.bit_length() - 1] -= each.count
        return left

    def places_for(self, each: OpenBundle, left: Sequence[int]) -> PlaceSet:
        """Places that may give something to a set."""
        key = (each.bundle, each.places)
        if key not in self._useful:
            self._useful[key] = self._places_of_use(each)
        found = self._useful[key]
        if each.bundle.same is not None:
            return found
        size, large_enough = each.size, 0
        for at in self._places.numbers_in(found):
            if left[at] >= size:
                large_enough |= 1 << at
        return large_enough

    def _places_of_use(self, each: OpenBundle) -> PlaceSet:
        found = 0
        for bit in self.units_of(each.bundle):
            found |= self._places.selected_by(bit)
        found &= each.places
        keys = each.bundle.same
        return found if keys is None else self._places.with_value(found, keys)

    def sets_by_value(
        self, each: OpenBundle, fixed: Sequence[FlowDemand], left: Sequence[int]
    ) -> list[tuple[PlaceSet, int]]:
        """The places of each value, in the order of preference, and how many sets fit there."""
        apart = self._places.by_value(self.places_for(each, left), each.bundle.same)
        if each.bundle.same is None:
            return [
                (here, min(left[here.bit_length() - 1] // each.size, each.count)) for here in apart
            ]
        return [(here, self._sets_within(each, here, fixed)) for here in apart]

    def has_room(self, position: PartialAssignment, left: Sequence[int]) -> bool:
        """False if some bundle, all others left away, cannot find room for all of its sets."""
        for each in position.open:
            if each.bundle.same is not None:
                values = self.sets_by_value(each, position.fixed, left)
                if sum(sets for _, sets in values) < each.count:
                    return False
        return self._has_room_for_single_devices(position, left)

    def _has_room_for_single_devices(
        self, position: PartialAssignment, left: Sequence[int]
    ) -> bool:
        """Those that want so much of one device, or more, are not more than devices can serve.

        For each size: a device with n units left serves at most n // size of them.
        """
        single = [each for each in position.open if each.bundle.same is None]
        single.sort(key=lambda each: -each.size)
        anywhere, count = 0, 0
        for each, after in zip_longest(single, single[1:]):
            anywhere |= self.places_for(each, left)
            count += each.count
            if after is None or after.size < each.size:
                room = sum(left[at] // each.size for at in self._places.numbers_in(anywhere))
                if count > room:
                    return False
        return True

    def _sets_within(self, each: OpenBundle, here: PlaceSet, fixed: Sequence[FlowDemand]) -> int:
        """Sets that fit there beside what is decided to be there; no more than are wanted."""
        # What may also be met elsewhere is left away: it need not take anything here.
        pinned = tuple(other for other in fixed if not other.places & ~here)
        key = (each.bundle, each.count, here, pinned)
        if key not in self._known:
            self._known[key] = self._most_sets(each, here, pinned)
        return self._known[key]

    def _most_sets(self, each: OpenBundle, here: PlaceSet, pinned: Sequence[FlowDemand]) -> int:
        """By bisection: where n sets fit, fewer do. What parts have to agree in is left away."""
        places, units = self._places, self.units_of(each.bundle)
        useful = {bit: here & places.selected_by(bit) for bit in units}
        least, most = 0, each.count
        for bit, count in units.items():
            most = min(most, sum(places.free[at] for at in places.numbers_in(useful[bit])) // count)
        # Mostly the bound is reached, so it is tried first.
        tried = most
        while least < most:
            sets = [FlowDemand(0, bit, count * tried, useful[bit]) for bit, count in units.items()]
            if places.flow([*pinned, *sets], cheapest=False) is not None:
                least = tried
            else:
                most = tried - 1
            tried = (least + most + 1) // 2
        return least
