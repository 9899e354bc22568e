"""Assignment: which devices of one node meet all wishes together, if any do.

Plain demands are a flow. Bundles, whose devices have to agree in some value or be one device, are
decided around it, value by value: how many of the bundle's sets are there? Sets are counted, never
listed, so a thousand cost no more than two. What cannot lead anywhere is seen early:

* by the flow, as if whatever is undecided did not matter;
* by the room that values have for a bundle, each by itself: it has to do for all sets (`room.py`);
* among values that are alike in every way, a later one never gets more than one before it.

Deciding takes time exponential in values and bundles at worst: packing bins is a case of it. When
`patience` is used up it is given up, which is another answer than that there is no assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from dovetail.devices.allocation.solver.bounds import Bounds, OpenBundle, PartialAssignment
from dovetail.devices.allocation.solver.flow import Taken
from dovetail.devices.allocation.solver.places import FlowDemand, Places, PlaceSet
from dovetail.devices.allocation.solver.problem import Bundle, DevicePlace, keys_of

MOST_STEPS = 20_000
"""Demands looked at, in all positions together: some tenths of a second."""


class SearchGivenUp(Exception):
    """It would take longer to decide than anybody should wait."""


def assign(
    places: Sequence[DevicePlace],
    wishes: Sequence[Bundle],
    *,
    cheapest: bool,
    patience: int = MOST_STEPS,
) -> list[Taken] | None:
    """What each wish takes of the places, which stand in the order of preference; None: nothing
    can meet them. With `cheapest` others move over for the sake of better places. Raises TooHard.
    """
    ground = Places(places, {keys for wish in wishes for keys in keys_of(wish)})
    return _Search(ground, cheapest=cheapest).run(wishes, patience)


class _Where(msgspec.Struct, frozen=True):
    """For whom, on which places, and how deep within bundles."""

    wish: int
    places: PlaceSet
    depth: int


class _Search:
    def __init__(self, ground: Places, *, cheapest: bool) -> None:
        self._ground, self._cheapest = ground, cheapest
        self._room = Bounds(ground)
        self._families: dict[tuple[Bundle, PlaceSet], int] = {}

    def run(self, wishes: Sequence[Bundle], patience: int) -> list[Taken] | None:
        start = PartialAssignment((), ())
        for number, wish in enumerate(wishes):
            whole = Bundle(1, (), (wish,))
            start = self._with_sets(start, whole, 1, _Where(number, self._ground.all, 0))
        levels: list[Iterator[PartialAssignment]] = [iter((start,))]
        while levels:
            position = next(levels[-1], None)
            if position is None:
                levels.pop()
                continue
            left = self._room.left(position.fixed)
            demands = self._demands(position, left)
            patience -= len(demands)
            if patience < 0 and len(levels) > 1:
                raise SearchGivenUp
            if not self._room.is_enough(position, left):
                continue
            takes = self._ground.flow(demands, cheapest=self._cheapest)
            if takes is not None and not position.open:
                return _by_wish(len(wishes), demands, takes)
            if takes is not None:
                levels.append(self._moves(position, left))
        return None

    def _demands(self, position: PartialAssignment, left: Sequence[int]) -> list[FlowDemand]:
        """In the order of wishes, as if nothing had to agree that is undecided."""
        found = list(position.fixed)
        for each in position.open:
            allowed = self._room.allowed(each, left)
            found += [
                FlowDemand(each.wish, bit, count * each.count, allowed & self._ground.selected(bit))
                for bit, count in self._room.needs(each.bundle).items()
            ]
        return sorted(found, key=lambda each: each.wish)

    def _with_sets(
        self, before: PartialAssignment, bundle: Bundle, sets: int, where: _Where
    ) -> PartialAssignment:
        """So many sets of the bundle more, with devices from there."""
        wish, places = where.wish, where.places
        fixed = tuple(
            FlowDemand(wish, each.bit, each.count * sets, places & self._ground.selected(each.bit))
            for each in bundle.demands
        )
        found = PartialAssignment(before.fixed + fixed, before.open)
        for part in bundle.parts:
            if part.same == ():
                found = self._with_sets(found, part, part.count * sets, where)
            else:
                one = msgspec.structs.replace(part, count=1)
                family = self._families.setdefault((one, places), len(self._families))
                added = OpenBundle(wish, one, part.count * sets, places, family, where.depth)
                found = PartialAssignment(found.fixed, (*found.open, added))
        return found

    def _moves(
        self, position: PartialAssignment, devices: Sequence[int]
    ) -> Iterator[PartialAssignment]:
        """The bundle whose turn it is gets a value, and as many sets there as there is room for, or
        less; then the value after it, and so on."""
        at = min(range(len(position.open)), key=lambda at: position.open[at].order)
        each = position.open[at]
        rest = PartialAssignment(position.fixed, position.open[:at] + position.open[at + 1 :])
        values = self._room.by_value(each, position.fixed, devices)
        after = sum(room for _, room in values)
        left, most = each.places, dict(each.most)
        for here, room in values:
            if after < each.count:
                return
            after -= room
            left &= ~here
            if room:
                kind = self._kind(each, here, rest)
                upper = min(room, most.get(kind, room))
                for sets in range(upper, max(0, each.count - after - 1), -1):
                    more = msgspec.structs.replace(
                        each, count=each.count - sets, places=left, most={**most, kind: sets}
                    )
                    where = _Where(each.wish, here, each.depth + 1)
                    yield _going_on(self._with_sets(rest, each.bundle, sets, where), more, here)
                most[kind] = 0

    def _kind(self, each: OpenBundle, here: PlaceSet, rest: PartialAssignment) -> object:
        """Equal for values that can change places, with all that is decided on them.

        All devices of the value count: also those of no use to this bundle, for others use them.
        """
        keys = each.bundle.same
        values = [has for other, has in self._ground.values.items() if other != keys]
        found: Counter[object] = Counter()
        for place in self._ground.listed(self._ground.alike(here, keys)):
            device, bit = self._ground.places[place], 1 << place
            fixed = tuple(
                (other.bit, other.count, other.places.bit_count())
                for other in rest.fixed
                if other.places & bit
            )
            opened = tuple(
                (other.bundle, other.count, other.places.bit_count())
                for other in rest.open
                if other.places & bit
            )
            has = tuple(every[place] for every in values)
            found[device.mask, device.free, has, fixed, opened] += 1
        return frozenset(found.items())


def _going_on(found: PartialAssignment, more: OpenBundle, here: PlaceSet) -> PartialAssignment:
    """With the sets that are left, if any are; those before them got the value `here`."""
    if more.count:
        # In front, so that it goes on before a twin begins.
        return PartialAssignment(found.fixed, (more, *found.open))
    # What comes before `here` needs no look for a twin: that was tried with the roles exchanged.
    opened = tuple(
        msgspec.structs.replace(each, places=here | more.places)
        if each.family == more.family
        else each
        for each in found.open
    )
    return PartialAssignment(found.fixed, opened)


def _by_wish(wishes: int, demands: Sequence[FlowDemand], takes: Sequence[Taken]) -> list[Taken]:
    found: list[Taken] = [{} for _ in range(wishes)]
    for each, taken in zip(demands, takes, strict=True):
        for place, units in taken.items():
            found[each.wish][place] = found[each.wish].get(place, 0) + units
    return found
