"""The device solver: branch and bound with flow bounds and symmetry breaking, for one node.

`assign` answers which places (devices with free units) meet all bundles together, one bundle per
request. The chooser calls it for a node that is picked, the fit cache for each state of nodes, the
count of nested units for each number tried.

Plain bundles are demands of a flow, and a flow decides them at once. What is left to search are
bundles whose devices have to agree in some value (`same`), or be one device.

Branching. A position is a partial assignment. In it the next open bundle, from the outside in, gets
its next value in the order of preference, and so many of its sets there: first as many as fit, then
fewer, then none, which leaves them to the values behind. Sets are counted, never listed, so a
thousand cost no more than two. Depth first, with a stack of iterators.

Bounds. A position is given up with all that would follow from it if

* the flow of all demands has no solution, even if open bundles need not agree in anything;
* some open bundle alone has too little room, summed over its values (`bounds`).

Both leave conditions away, so no solution is lost. A flow that has a solution in a position without
open bundles is the answer.

Symmetry. Of solutions that differ only by an exchange of equals one is looked at: values that are
alike in every way get sets in descending numbers, and bundles that are alike get values in order.

End. Each step down decides a value of a bundle, and bundles have finitely many, so it ends; but the
time is exponential in values and bundles at worst, as bin packing is a case of it. So the steps are
bounded by `most_steps`, and SearchGivenUp is raised when they are used up: another answer than
None, which says that no assignment exists. The first position is always decided, whatever the
bound: plain requests always get an answer. The solution is the first that is found, not the best of
all: the flow's part of it is the best (with `cheapest`), values are taken as they are preferred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from dovetail.devices.allocation.solver.bounds import Bounds, OpenBundle, PartialAssignment
from dovetail.devices.allocation.solver.flow import UnitsByPlace
from dovetail.devices.allocation.solver.places import FlowDemand, Places, PlaceSet
from dovetail.devices.allocation.solver.problem import Bundle, DevicePlace, keys_of

MOST_STEPS = 20_000
"""Flow demands looked at, in all positions together: some tenths of a second."""


class SearchGivenUp(Exception):
    """It would take longer to decide than anybody should wait."""


def assign(
    places: Sequence[DevicePlace],
    bundles: Sequence[Bundle],
    *,
    cheapest: bool,
    most_steps: int = MOST_STEPS,
) -> list[UnitsByPlace] | None:
    """What each bundle takes of the places, which stand in the order of preference; None: nothing
    can meet them. With `cheapest` others move over for the sake of better places.

    Raises SearchGivenUp.
    """
    keys = {keys for bundle in bundles for keys in keys_of(bundle)}
    return _Search(Places(places, keys), cheapest=cheapest).run(bundles, most_steps)


class _Where(msgspec.Struct, frozen=True):
    """For which request, on which places, and how deep within bundles."""

    request: int
    places: PlaceSet
    depth: int


class _Search:
    def __init__(self, places: Places, *, cheapest: bool) -> None:
        self._places, self._cheapest = places, cheapest
        self._bounds = Bounds(places)
        self._families: dict[tuple[Bundle, PlaceSet], int] = {}

    def run(self, bundles: Sequence[Bundle], most_steps: int) -> list[UnitsByPlace] | None:
        start = PartialAssignment((), ())
        for number, bundle in enumerate(bundles):
            whole = Bundle(1, (), (bundle,))
            start = self._with_sets(start, whole, 1, _Where(number, self._places.all, 0))
        levels: list[Iterator[PartialAssignment]] = [iter((start,))]
        while levels:
            position = next(levels[-1], None)
            if position is None:
                levels.pop()
                continue
            left = self._bounds.units_left(position.fixed)
            demands = self._demands(position, left)
            most_steps -= len(demands)
            if most_steps < 0 and len(levels) > 1:
                raise SearchGivenUp
            if not self._bounds.has_room(position, left):
                continue
            takes = self._places.flow(demands, cheapest=self._cheapest)
            if takes is not None and not position.open:
                return _by_request(len(bundles), demands, takes)
            if takes is not None:
                levels.append(self._branches(position, left))
        return None

    def _demands(self, position: PartialAssignment, left: Sequence[int]) -> list[FlowDemand]:
        """In the order of requests, as if nothing had to agree that is undecided."""
        found = list(position.fixed)
        for each in position.open:
            usable = self._bounds.places_for(each, left)
            found += [
                FlowDemand(
                    each.request, bit, count * each.count, usable & self._places.selected_by(bit)
                )
                for bit, count in self._bounds.units_of(each.bundle).items()
            ]
        return sorted(found, key=lambda each: each.request)

    def _with_sets(
        self, before: PartialAssignment, bundle: Bundle, sets: int, where: _Where
    ) -> PartialAssignment:
        """So many sets of the bundle more, with devices from there."""
        request, places = where.request, where.places
        fixed = tuple(
            FlowDemand(
                request, each.bit, each.count * sets, places & self._places.selected_by(each.bit)
            )
            for each in bundle.demands
        )
        found = PartialAssignment(before.fixed + fixed, before.open)
        for part in bundle.parts:
            if part.same == ():
                found = self._with_sets(found, part, part.count * sets, where)
            else:
                one = msgspec.structs.replace(part, count=1)
                family = self._families.setdefault((one, places), len(self._families))
                added = OpenBundle(request, one, part.count * sets, places, family, where.depth)
                found = PartialAssignment(found.fixed, (*found.open, added))
        return found

    def _branches(
        self, position: PartialAssignment, units_left: Sequence[int]
    ) -> Iterator[PartialAssignment]:
        """The bundle whose turn it is gets a value, and as many sets there as there is room for, or
        less; then the value after it, and so on."""
        at = min(range(len(position.open)), key=lambda at: position.open[at].order)
        each = position.open[at]
        rest = PartialAssignment(position.fixed, position.open[:at] + position.open[at + 1 :])
        values = self._bounds.sets_by_value(each, position.fixed, units_left)
        after = sum(room for _, room in values)
        left, most = each.places, dict(each.most)
        for here, room in values:
            # The values from here on are all there are: earlier ones were passed over.
            if after < each.count:
                return
            after -= room
            left &= ~here
            if room:
                kind = self._kind(each, here, rest)
                # An alike value before this one got fewer: with more here the two would exchange
                # what they have, and that position was looked at already.
                upper = min(room, most.get(kind, room))
                # With fewer than this the values behind could not take what is left.
                lower = max(1, each.count - after)
                for sets in range(upper, lower - 1, -1):
                    more = msgspec.structs.replace(
                        each, count=each.count - sets, places=left, most={**most, kind: sets}
                    )
                    where = _Where(each.request, here, each.depth + 1)
                    yield _with_rest(self._with_sets(rest, each.bundle, sets, where), more, here)
                most[kind] = 0

    def _kind(self, each: OpenBundle, here: PlaceSet, rest: PartialAssignment) -> object:
        """Equal for values that can change places, with all that is decided on them.

        All devices of the value count: also those of no use to this bundle, for others use them.
        """
        keys = each.bundle.same
        values = [has for other, has in self._places.values.items() if other != keys]
        found: Counter[object] = Counter()
        for place in self._places.numbers_in(self._places.all_of_value(here, keys)):
            device, bit = self._places.places[place], 1 << place
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


def _with_rest(found: PartialAssignment, more: OpenBundle, here: PlaceSet) -> PartialAssignment:
    """With the sets that are left, if any are; those before them got the value `here`."""
    if more.count:
        # In front, so that it goes on before a twin begins.
        return PartialAssignment(found.fixed, (more, *found.open))
    # A twin need not look at values before `here`, the last of this bundle: whatever the two have
    # together can be dealt out so that this one has the earlier values, and that is tried.
    opened = tuple(
        msgspec.structs.replace(each, places=here | more.places)
        if each.family == more.family
        else each
        for each in found.open
    )
    return PartialAssignment(found.fixed, opened)


def _by_request(
    requests: int, demands: Sequence[FlowDemand], takes: Sequence[UnitsByPlace]
) -> list[UnitsByPlace]:
    found: list[UnitsByPlace] = [{} for _ in range(requests)]
    for each, taken in zip(demands, takes, strict=True):
        for place, units in taken.items():
            found[each.request][place] = found[each.request].get(place, 0) + units
    return found
