"""Nested classes against the classes there are: what is unknown, goes in a circle, or too deep.

Whoever takes in a class asks here first. Depth-first, cut off at `DEEPEST` levels, so it ends even
for classes that contain each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.devices.classes.documents import DeviceClass, Problem

DEEPEST = 4
"""Levels of members below a class."""

MOST_DEVICES = 4096
"""In one unit: more than a node has."""


def problems_by_class(classes: Mapping[str, DeviceClass]) -> dict[str, tuple[Problem, ...]]:
    """What keeps nested classes from being resolved, by class; those without problems are left out.

    A class that only contains a broken one is broken, too, and is told which.
    """
    found = {name: tuple(_problems(cls, classes)) for name, cls in classes.items() if cls.members}
    return {name: each for name, each in found.items() if each}


def problems_of(cls: DeviceClass, others: Mapping[str, DeviceClass]) -> tuple[Problem, ...]:
    """Of one class, were it added to the others."""
    return tuple(_problems(cls, {**others, cls.name: cls}))


def _problems(cls: DeviceClass, classes: Mapping[str, DeviceClass]) -> Iterator[Problem]:
    sound = True
    for index, member in enumerate(cls.members):
        trail = _trouble((cls.name, member.name), classes)
        if trail:
            sound = False
            yield Problem(f"spec.members[{index}].class", trail)
    if sound and (size := device_count(cls, classes)) > MOST_DEVICES:
        yield Problem(
            "spec.members", f"one unit takes {size} devices: at most {MOST_DEVICES} are possible"
        )


def _trouble(trail: tuple[str, ...], classes: Mapping[str, DeviceClass]) -> str:
    """What is wrong at the end of the trail or below; nothing if all is well."""
    *above, name = trail
    shown = " > ".join(trail)
    if name in above:
        return f"goes in a circle: {shown}"
    if name not in classes:
        return f"there is no class {name!r}" + (f" ({shown})" if len(trail) > 2 else "")
    if len(above) > DEEPEST:
        return f"is nested deeper than {DEEPEST} levels: {shown}"
    below = (_trouble((*trail, member.name), classes) for member in classes[name].members)
    return next(filter(None, below), "")


def device_count(cls: DeviceClass, classes: Mapping[str, DeviceClass]) -> int:
    """How many devices one unit is made of. The class has to be without problems."""
    if not cls.members:
        return 1
    return sum(each.count * device_count(classes[each.name], classes) for each in cls.members)


def leaves(cls: DeviceClass, classes: Mapping[str, DeviceClass]) -> frozenset[str]:
    """The classes at the bottom, which select devices. The class has to be without problems."""
    if not cls.members:
        return frozenset((cls.name,))
    return frozenset().union(*(leaves(classes[each.name], classes) for each in cls.members))
