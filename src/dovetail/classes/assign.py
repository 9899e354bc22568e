"""Assignment: which devices of one node meet all demands together, if any do.

Units of demands on devices are a bipartite flow. A demand takes the first devices that are left;
one that comes up short makes others move over, along an augmenting path. So a plain set of demands
is refused only if nothing can meet it, in time polynomial in demands and devices.

Demands for a single device, and groups whose devices have to agree in some value, are decided by
backtracking around that flow: the flow without what is undecided is a bound, and choices that only
differ in which of several alike devices or values they name are tried once. That may take time
exponential in the number of such demands and groups; after `PATIENCE` positions it is given up, as
if nothing had been found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

PATIENCE = 2000

Value = tuple[str, ...]
Taken = dict[int, int]
"""Units by place."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """A device as far as assignment can tell: two of one shape are alike."""

    shape: int
    mask: int
    """A bit for each class that selects it."""
    attributes: Mapping[str, str]
    free: int


class Demand(msgspec.Struct, frozen=True):
    """Units of devices that some class selects."""

    bit: int
    count: int
    single: bool = False
    """All from one device."""
    groups: tuple[int, ...] = ()
    """Whose values its devices have to agree with, outermost first."""
    ask: int = 0


class Group(msgspec.Struct, frozen=True):
    """The devices of its demands have one value for each of these keys."""

    keys: tuple[str, ...]
    family: tuple[int, str]
    """Groups of one family are alike: what one of them got, another can have."""


class Problem(msgspec.Struct, frozen=True):
    """Demands to be met together. Groups of one family stand together."""

    demands: tuple[Demand, ...]
    groups: tuple[Group, ...] = ()


class Flow:
    """Units of demands on places; never more than are free."""

    def __init__(self, free: Sequence[int], *, cheapest: bool) -> None:
        """Places are numbered as they are preferred.

        With `cheapest` the places used in the end are the most preferred that can be: a demand may
        make others move over for it. Else nobody moves who need not.
        """
        self.takes: list[Taken] = []
        self._left = list(free)
        self._cheapest = cheapest
        self._options: list[Sequence[int]] = []
        self._users: list[set[int]] = [set() for _ in free]

    def add(self, options: Sequence[int], count: int) -> bool:
        """One more demand; options in ascending order. False if it cannot be met as well."""
        demand = len(self.takes)
        self.takes.append({})
        self._options.append(options)
        if not self._cheapest:
            for place in options:
                units = min(self._left[place], count)
                if units:
                    self._move(demand, place, units)
                    self._left[place] -= units
                    count -= units
        while count:
            path = self._path(demand)
            if path is None:
                return False
            count -= self._augment(path, count)
        return True

    def _path(self, demand: int) -> list[tuple[int, int]] | None:
        """Who takes which place in turn, from the place that has units left back to the demand."""
        taker: dict[int, int] = {}
        leaves: dict[int, int] = {}
        queue = [demand]
        end: int | None = None
        for asker in queue:
            for place in self._options[asker]:
                if place in taker:
                    continue
                taker[place] = asker
                if self._left[place] and (end is None or place < end):
                    end = place
                    if not self._cheapest:
                        break
                for user in self._users[place]:
                    if user != demand and user not in leaves:
                        leaves[user] = place
                        queue.append(user)
            if end is not None and not self._cheapest:
                break
        if end is None:
            return None
        path = [(taker[end], end)]
        while path[-1][0] != demand:
            place = leaves[path[-1][0]]
            path.append((taker[place], place))
        return path

    def _augment(self, path: list[tuple[int, int]], wanted: int) -> int:
        end = path[0][1]
        units = min(wanted, self._left[end])
        for (mover, _), (_, place) in pairwise(path):
            units = min(units, self.takes[mover][place])
        self._left[end] -= units
        for (mover, to), (_, place) in pairwise(path):
            self._move(mover, to, units)
            self._move(mover, place, -units)
        self._move(*path[-1], units)
        return units

    def _move(self, demand: int, place: int, units: int) -> None:
        taken = self.takes[demand]
        taken[place] = taken.get(place, 0) + units
        if taken[place]:
            self._users[place].add(demand)
        else:
            del taken[place]
            self._users[place].discard(demand)


def assign(places: Sequence[Place], problem: Problem, *, cheapest: bool) -> list[Taken] | None:
    """What each demand takes of the places, which stand in the order of preference."""
    try:
        return _Search(places, problem, cheapest=cheapest).run()
    except _TooHard:
        return None


class _TooHard(Exception):
    """More positions were looked at than anybody should wait for."""


class _Search:
    """Decides the groups, then the demands for a single device, one after the other."""

    def __init__(self, places: Sequence[Place], problem: Problem, *, cheapest: bool) -> None:
        self._places, self._cheapest = places, cheapest
        self._demands, self._groups = problem.demands, problem.groups
        self._free = [each.free for each in places]
        self._options = [self._options_of(each) for each in problem.demands]
        numbered = enumerate(problem.demands)
        self._singles = sorted(
            (number for number, each in numbered if each.single), key=self._likeness
        )
        keys = {each.keys for each in problem.groups}
        self._values = {key: [_value(each, key) for each in places] for key in keys}
        self._interchangeable = len(keys) == 1
        self._value: list[Value] = []
        self._device: dict[int, int] = {}
        self._positions = 0

    def run(self) -> list[Taken] | None:
        self._positions += 1
        if self._positions > PATIENCE:
            raise _TooHard
        takes = self._relaxed()
        if takes is None or self._is_solution(takes):
            return takes
        group = len(self._value)
        if group < len(self._groups):
            for value in self._candidates(group):
                self._value.append(value)
                found = self.run()
                self._value.pop()
                if found is not None:
                    return found
            return None
        demand = self._singles[len(self._device)]
        for place in self._homes(demand):
            self._device[demand] = place
            found = self.run()
            del self._device[demand]
            if found is not None:
                return found
        return None

    def _relaxed(self) -> list[Taken] | None:
        """The flow if all that is undecided did not matter."""
        flow = Flow(self._free, cheapest=self._cheapest)
        for number, demand in enumerate(self._demands):
            if not flow.add(self._open(number), demand.count):
                return None
        return flow.takes

    def _options_of(self, demand: Demand) -> list[int]:
        least = demand.count if demand.single else 1
        return [
            number
            for number, each in enumerate(self._places)
            if each.mask & demand.bit and each.free >= least
        ]

    def _open(self, number: int) -> list[int]:
        """Places that what was decided leaves to the demand."""
        if number in self._device:
            return [self._device[number]]
        options = self._options[number]
        for group in self._demands[number].groups:
            values = self._values[self._groups[group].keys]
            if group < len(self._value):
                options = [place for place in options if values[place] == self._value[group]]
            else:
                options = [place for place in options if values[place] is not None]
        return options

    def _is_solution(self, takes: list[Taken]) -> bool:
        agreed: dict[int, Value | None] = {}
        for demand, taken in zip(self._demands, takes, strict=True):
            if demand.single and len(taken) > 1:
                return False
            for group in demand.groups:
                values = self._values[self._groups[group].keys]
                found = {values[place] for place in taken}
                if {agreed.setdefault(group, values[next(iter(taken))])} != found:
                    return False
        return True

    def _candidates(self, group: int) -> Iterator[Value]:
        """Values for the group; of those that are alike in every way only the first."""
        keys, family = self._groups[group].keys, self._groups[group].family
        values = self._values[keys]
        members = [number for number, each in enumerate(self._demands) if group in each.groups]
        possible = {values[place] for number in members for place in self._open(number)}
        ordered = [each for each in dict.fromkeys(values) if each in possible and each is not None]
        if group and self._groups[group - 1].family == family and self._value[-1] in ordered:
            # What the twin before it passed over was tried with the roles exchanged.
            ordered = ordered[ordered.index(self._value[-1]) :]
        seen: set[object] = set()
        for value in ordered:
            kind = self._kind(value, values) if self._interchangeable else value
            if kind not in seen:
                seen.add(kind)
                yield value

    def _kind(self, value: Value, values: Sequence[Value | None]) -> object:
        held = [
            (p.mask, p.free) for p, has in zip(self._places, values, strict=True) if has == value
        ]
        decided = zip(self._groups, self._value, strict=False)
        return (
            tuple(sorted(held)),
            tuple(sorted(group.family for group, other in decided if other == value)),
        )

    def _homes(self, demand: int) -> Iterator[int]:
        """Places for a demand for a single device; of those that are alike only the first."""
        count = self._demands[demand].count
        load: dict[int, int] = {}
        for number, place in self._device.items():
            load[place] = load.get(place, 0) + self._demands[number].count
        first = 0
        if self._device:
            before = next(reversed(self._device))
            if self._likeness(before) == self._likeness(demand):
                first = self._device[before]
        seen: set[tuple[int, int, int]] = set()
        for place in self._open(demand):
            each = self._places[place]
            alike = (each.shape, each.free, load.get(place, 0))
            if place >= first and each.free - alike[2] >= count and alike not in seen:
                seen.add(alike)
                yield place

    def _likeness(self, number: int) -> tuple[int, tuple[int, ...], int]:
        """Equal for demands that can change places. Those with least choice, the largest, first."""
        each = self._demands[number]
        return (-each.count, each.groups, each.bit)


def _value(place: Place, keys: tuple[str, ...]) -> Value | None:
    """None if the device lacks one of the keys: it then agrees with no other."""
    found = tuple(place.attributes[key] for key in keys if key in place.attributes)
    return found if len(found) == len(keys) else None
