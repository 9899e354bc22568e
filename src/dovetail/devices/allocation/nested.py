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

from dovetail.devices.allocation.catalogue import Catalogue
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.problem import Bundle, DeviceDemand, DevicePlace
from dovetail.devices.allocation.solver.search import SearchGivenUp, assign


def bundles_of(requests: Iterable[DeviceRequest], catalogue: Catalogue) -> list[Bundle]:
    """One for each request; every class has to be whole."""
    return [_bundle(each.class_name, each.count, catalogue) for each in requests]


def _bundle(name: str, count: int, catalogue: Catalogue) -> Bundle:
    cls = catalogue[name]
    if not cls.members:
        demand = DeviceDemand(catalogue.bit(name), count)
        return Bundle(1, (demand,), same=None if cls.single_device else ())
    parts = tuple(_bundle(each.name, each.count, catalogue) for each in cls.members)
    return Bundle(count, (), parts, cls.same)


def is_searched_for(name: str, catalogue: Catalogue) -> bool:
    """Whether units of the class are found by a search that may be given up, not by counting."""
    cls = catalogue[name]
    return cls.single_device or any(
        bool(catalogue[each.name].same) or is_searched_for(each.name, catalogue)
        for each in cls.members
    )


def most_units(name: str, places: Sequence[DevicePlace], catalogue: Catalogue) -> int:
    """The most units of a nested class that these devices make, as far as can be found out."""
    keys = catalogue[name].same
    parts: dict[tuple[str, ...], list[DevicePlace]] = {}
    for place in places:
        if all(key in place.attributes for key in keys):
            parts.setdefault(tuple(place.attributes[key] for key in keys), []).append(place)
    return sum(_most_of_value(name, part, catalogue) for part in parts.values())


def _most_of_value(name: str, places: Sequence[DevicePlace], catalogue: Catalogue) -> int:
    """The same of devices that agree in all they have to."""
    units = catalogue.leaves(name) or {}
    bits = {leaf: catalogue.bit(leaf) for leaf in units}
    most = min(
        sum(each.free for each in places if each.mask & bits[leaf]) // count
        for leaf, count in units.items()
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


def _is_formable(
    name: str, units: int, places: Sequence[DevicePlace], catalogue: Catalogue
) -> bool:
    bundle = msgspec.structs.replace(_bundle(name, units, catalogue), same=())
    try:
        return assign(places, [bundle], cheapest=False) is not None
    except SearchGivenUp:
        return False
