"""Nested classes: requests as bundles for the solver, and how many units can be formed at most.

The chooser takes bundles from here; lazy counts ask how many units a node has. Where the devices of
a unit have to agree in some keys, no device can be in units of two values: the values are counted
one by one. Within a value the number is found by bisection, one assignment per step: as many steps
as the number has binary digits. With plain members the assignment is a flow, so the whole is
polynomial; members that are themselves nested with keys of their own, or for a single device, are
searched for, and a number that the search gives up counts as too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.problem import Bundle, DeviceDemand, DevicePlace
from dovetail.devices.allocation.solver.search import SearchGivenUp, assign


def bundles_of(requests: Iterable[DeviceRequest], classes: ClassColumns) -> list[Bundle]:
    """One for each request; every class has to be whole."""
    return [_bundle(each.class_name, each.count, classes) for each in requests]


def _bundle(name: str, count: int, classes: ClassColumns) -> Bundle:
    cls = classes[name]
    if not cls.members:
        demand = DeviceDemand(classes.bit(name), count)
        return Bundle(1, (demand,), same=None if cls.single_device else ())
    parts = tuple(_bundle(each.name, each.count, classes) for each in cls.members)
    return Bundle(count, (), parts, cls.same)


def is_searched_for(name: str, classes: ClassColumns) -> bool:
    """Whether units of the class are found by a search that may be given up, not by counting."""
    cls = classes[name]
    return cls.single_device or any(
        bool(classes[each.name].same) or is_searched_for(each.name, classes) for each in cls.members
    )


def most_units(name: str, places: Sequence[DevicePlace], classes: ClassColumns) -> int:
    """The most units of a nested class that these devices make, as far as can be found out."""
    keys = classes[name].same
    parts: dict[tuple[str, ...], list[DevicePlace]] = {}
    for place in places:
        if all(key in place.attributes for key in keys):
            parts.setdefault(tuple(place.attributes[key] for key in keys), []).append(place)
    return sum(_most_of_value(name, part, classes) for part in parts.values())


def _most_of_value(name: str, places: Sequence[DevicePlace], classes: ClassColumns) -> int:
    """The same of devices that agree in all they have to."""
    units = classes.leaves(name) or {}
    bits = {leaf: classes.bit(leaf) for leaf in units}
    most = min(
        sum(each.free for each in places if each.mask & bits[leaf]) // count
        for leaf, count in units.items()
    )
    least = 0
    # Mostly the bound is reached, so it is tried first.
    tried = most
    while least < most:
        if _is_formable(name, tried, places, classes):
            least = tried
        else:
            most = tried - 1
        tried = (least + most + 1) // 2
    return least


def _is_formable(
    name: str, units: int, places: Sequence[DevicePlace], classes: ClassColumns
) -> bool:
    bundle = msgspec.structs.replace(_bundle(name, units, classes), same=())
    try:
        return assign(places, [bundle], cheapest=False) is not None
    except SearchGivenUp:
        return False
