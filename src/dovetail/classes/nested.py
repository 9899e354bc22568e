"""Nested classes: asks taken apart into demands on devices, and how many units can be formed.

Where the devices of a unit have to agree in some keys, no device can be in units of two values: the
values are counted one by one. Within a value the number is found by bisection, at the cost of one
assignment per step; with plain members that is a flow, so the whole is polynomial. Members that are
themselves nested with keys of their own, or for a single device, need backtracking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.classes.asks import Ask
from dovetail.classes.assign import Demand, Group, Place, Problem, assign
from dovetail.classes.catalogue import Catalogue


def problem_of(asks: Iterable[Ask], catalogue: Catalogue) -> Problem:
    """All asks together; every class has to be whole."""
    parts = _Parts(catalogue)
    for number, ask in enumerate(asks):
        parts.add(ask.class_name, ask.count, (), number)
    return parts.problem()


def formable(name: str, places: Sequence[Place], catalogue: Catalogue) -> int:
    """The most units of a nested class that these devices make."""
    keys = catalogue[name].same
    parts: dict[tuple[str, ...], list[Place]] = {}
    for place in places:
        if all(key in place.attributes for key in keys):
            parts.setdefault(tuple(place.attributes[key] for key in keys), []).append(place)
    return sum(_most(name, part, catalogue) for part in parts.values())


def _most(name: str, places: Sequence[Place], catalogue: Catalogue) -> int:
    """The same of devices that agree in all they have to."""
    needs = catalogue.leaves(name) or {}
    bits = {leaf: catalogue.bit(leaf) for leaf in needs}
    most = min(
        sum(each.free for each in places if each.mask & bits[leaf]) // count
        for leaf, count in needs.items()
    )
    least = 0
    # Mostly the bound is reached, so it is tried first.
    tried = most
    while least < most:
        if _is_formable(name, tried, places, catalogue):
            least = tried
        else:
            most = tried - 1
        tried = (least + most + 1) // 2
    return least


def _is_formable(name: str, units: int, places: Sequence[Place], catalogue: Catalogue) -> bool:
    parts = _Parts(catalogue)
    for _ in range(units):
        parts.add_members(name, (), 0)
    return assign(places, parts.problem(), cheapest=False) is not None


class _Parts:
    """Demands and groups, gathered unit by unit."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._groups: list[tuple[int, Group]] = []
        self._plain: dict[tuple[str, tuple[int, ...], int], int] = {}
        self._single: list[tuple[str, tuple[int, ...], int, int]] = []

    def add(self, name: str, count: int, groups: tuple[int, ...], ask: int) -> None:
        cls = self._catalogue[name]
        if not cls.members:
            if cls.single_device:
                self._single.append((name, groups, ask, count))
            else:
                known = self._plain.get((name, groups, ask), 0)
                self._plain[name, groups, ask] = known + count
            return
        for _ in range(count):
            within = groups
            if cls.same:
                family = (groups[-1] if groups else -1, name)
                within = (*groups, len(self._groups))
                self._groups.append((len(groups), Group(cls.same, family)))
            self.add_members(name, within, ask)

    def add_members(self, name: str, groups: tuple[int, ...], ask: int) -> None:
        for member in self._catalogue[name].members:
            self.add(member.name, member.count, groups, ask)

    def problem(self) -> Problem:
        """Groups are decided from the outside in, family by family."""
        order = sorted(
            range(len(self._groups)),
            key=lambda number: (self._groups[number][0], self._groups[number][1].family),
        )
        place = {number: index for index, number in enumerate(order)}
        bit = self._catalogue.bit
        demands = [
            Demand(bit(name), count, single, tuple(place[each] for each in groups), ask)
            for single, listed in (
                (False, [(*key, count) for key, count in self._plain.items()]),
                (True, self._single),
            )
            for name, groups, ask, count in listed
        ]
        demands.sort(key=lambda each: each.ask)
        return Problem(tuple(demands), tuple(self._groups[number][1] for number in order))
