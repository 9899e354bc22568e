"""Room: how many sets of a bundle values can have, whatever becomes of the rest. A bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import msgspec

from dovetail.devices.allocation.solver.places import FlowDemand, Places, PlaceSet
from dovetail.devices.allocation.solver.problem import Bundle, needs_of


class OpenBundle(msgspec.Struct, frozen=True):
    """A bundle; so many of its sets are to be given values, among those of the places."""

    wish: int
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
    """What is decided, and what is not."""

    fixed: tuple[FlowDemand, ...]
    open: tuple[OpenBundle, ...]


class Bounds:
    def __init__(self, ground: Places) -> None:
        self._ground = ground
        self._needs: dict[Bundle, dict[int, int]] = {}
        self._useful: dict[tuple[Bundle, PlaceSet], PlaceSet] = {}
        self._known: dict[object, int] = {}

    def needs(self, bundle: Bundle) -> Mapping[int, int]:
        """Units of one set, by the bit of their class."""
        if bundle not in self._needs:
            self._needs[bundle] = needs_of(bundle)
        return self._needs[bundle]

    def left(self, fixed: Sequence[FlowDemand]) -> list[int]:
        """Of each device, without what it has to give for sure."""
        left = list(self._ground.free)
        for each in fixed:
            if not each.places & (each.places - 1):
                left[each.places.bit_length() - 1] -= each.count
        return left

    def allowed(self, each: OpenBundle, left: Sequence[int]) -> PlaceSet:
        """Places that may give something to a set."""
        key = (each.bundle, each.places)
        if key not in self._useful:
            self._useful[key] = self._usable(each)
        found = self._useful[key]
        if each.bundle.same is not None:
            return found
        size, open_ = each.size, 0
        for at in self._ground.listed(found):
            if left[at] >= size:
                open_ |= 1 << at
        return open_

    def _usable(self, each: OpenBundle) -> PlaceSet:
        found = 0
        for bit in self.needs(each.bundle):
            found |= self._ground.selected(bit)
        found &= each.places
        keys = each.bundle.same
        return found if keys is None else self._ground.valued(found, keys)

    def by_value(
        self, each: OpenBundle, fixed: Sequence[FlowDemand], left: Sequence[int]
    ) -> list[tuple[PlaceSet, int]]:
        """The places of each value, in the order of preference, and how many sets fit there."""
        apart = self._ground.by_value(self.allowed(each, left), each.bundle.same)
        if each.bundle.same is None:
            return [
                (here, min(left[here.bit_length() - 1] // each.size, each.count)) for here in apart
            ]
        return [(here, self._within(each, here, fixed)) for here in apart]

    def is_enough(self, position: PartialAssignment, left: Sequence[int]) -> bool:
        """False if some bundle cannot find room for all of its sets."""
        for each in position.open:
            if each.bundle.same is not None:
                values = self.by_value(each, position.fixed, left)
                if sum(room for _, room in values) < each.count:
                    return False
        return self._is_enough_for_single_devices(position, left)

    def _is_enough_for_single_devices(
        self, position: PartialAssignment, left: Sequence[int]
    ) -> bool:
        """Those that want so much of one device, or more, are not more than devices can serve."""
        wanted = [each for each in position.open if each.bundle.same is None]
        wanted.sort(key=lambda each: -each.size)
        anywhere, count = 0, 0
        for each, after in zip_longest(wanted, wanted[1:]):
            anywhere |= self.allowed(each, left)
            count += each.count
            if after is None or after.size < each.size:
                room = sum(left[at] // each.size for at in self._ground.listed(anywhere))
                if count > room:
                    return False
        return True

    def _within(self, each: OpenBundle, here: PlaceSet, fixed: Sequence[FlowDemand]) -> int:
        """Sets that fit there beside what is decided to be there; no more than are wanted."""
        pinned = tuple(other for other in fixed if not other.places & ~here)
        key = (each.bundle, each.count, here, pinned)
        if key not in self._known:
            self._known[key] = self._most(each, here, pinned)
        return self._known[key]

    def _most(self, each: OpenBundle, here: PlaceSet, pinned: Sequence[FlowDemand]) -> int:
        ground, needs = self._ground, self.needs(each.bundle)
        useful = {bit: here & ground.selected(bit) for bit in needs}
        least, most = 0, each.count
        for bit, count in needs.items():
            most = min(most, sum(ground.free[at] for at in ground.listed(useful[bit])) // count)
        # Mostly the bound is reached, so it is tried first.
        tried = most
        while least < most:
            sets = [FlowDemand(0, bit, count * tried, useful[bit]) for bit, count in needs.items()]
            if ground.flow([*pinned, *sets], cheapest=False) is not None:
                least = tried
            else:
                most = tried - 1
            tried = (least + most + 1) // 2
        return least
