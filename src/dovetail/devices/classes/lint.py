"""Lint: static analysis of a set of device classes, by themselves and on a fleet.

`dovetail classes lint` shows what it finds. Each class looks once at each group of devices that the
classes can tell apart; pairs of classes are compared as rows of a matrix, so the time is that of
one product of matrices: classes squared times groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec
import numpy as np
import numpy.typing as npt

from dovetail.core.device import RESERVED, Device
from dovetail.core.selectors.selector import (
    Expression,
    Mismatch,
    compile_selector,
    mismatch,
    mismatches,
)
from dovetail.devices.classes import hierarchy
from dovetail.devices.classes.device_groups import DeviceGroup, groups_of, keys_of
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.implication import Meaning, is_impossible

MOST_CLASSES_NAMED = 5
"""Other classes that a message names; the rest are counted."""


class LintKind(StrEnum):
    BROKEN = "broken"
    EMPTY = "empty"
    UNREACHABLE = "unreachable"
    IDENTICAL = "identical"
    SUBSUMED = "subsumed"
    OVERLAPPING = "overlapping"
    NEAR_MISS = "near-miss"
    DIMENSION = "dimension"


class LintFinding(msgspec.Struct, frozen=True):
    class_name: str
    kind: LintKind
    message: str


def lint(classes: Sequence[DeviceClass], devices: Sequence[Device]) -> tuple[LintFinding, ...]:
    """Everything that is likely to be a mistake, by class in the order given. No devices: what
    can be said without a fleet."""
    fleet = _Fleet(classes, devices)
    found = [
        *_broken(classes),
        *_empty(classes),
        *_unreachable(fleet),
        *_containment(fleet),
        *_overlapping(fleet),
        *_key_slips(fleet),
        *_dimensions(fleet),
    ]
    order = {cls.name: at for at, cls in enumerate(classes)}
    return tuple(sorted(found, key=lambda each: order[each.class_name]))


class _Fleet:
    """Which class selects which kind of device."""

    def __init__(self, classes: Sequence[DeviceClass], devices: Sequence[Device]) -> None:
        self.classes = classes
        self.devices = devices
        self.kinds: tuple[DeviceGroup, ...] = groups_of(devices, keys_of(classes))
        meanings = {cls.name: Meaning(cls.selector) for cls in classes}
        self.selecting = [cls for cls in classes if not meanings[cls.name].is_never]
        """Classes that could select something."""
        self.meanings = [meanings[cls.name] for cls in self.selecting]
        self.selects = np.array(
            [
                [*map(compile_selector(cls.selector), (kind.attributes for kind in self.kinds))]
                for cls in self.selecting
            ],
            dtype=bool,
        ).reshape(len(self.selecting), len(self.kinds))
        self.units = np.array([kind.units for kind in self.kinds], dtype=np.int64)

    def shared_weights(self, weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """By pair of classes: the weight of the kinds that both select."""
        # Only products of floats are fast, and units are far below where these get inexact.
        selects = self.selects.astype(np.float64)
        return ((selects * weights) @ selects.T).astype(np.int64)


def _broken(classes: Sequence[DeviceClass]) -> Iterator[LintFinding]:
    for name, problems in hierarchy.problems_by_class({cls.name: cls for cls in classes}).items():
        for each in problems:
            yield LintFinding(name, LintKind.BROKEN, str(each))


def _empty(classes: Sequence[DeviceClass]) -> Iterator[LintFinding]:
    for cls in classes:
        if cls.members:
            continue
        if not any(cls.selector):
            yield LintFinding(cls.name, LintKind.EMPTY, "has no expressions, so it selects nothing")
            continue
        for index, branch in enumerate(cls.selector):
            if is_impossible(branch):
                yield LintFinding(
                    cls.name,
                    LintKind.EMPTY,
                    f"selector {index} can be met by no device: {_branch_text(branch)}",
                )


def _branch_text(branch: Iterable[Expression]) -> str:
    return " and ".join(map(str, branch)) or "it has no expressions"


def _unreachable(fleet: _Fleet) -> Iterator[LintFinding]:
    if not fleet.devices:
        return
    keys = {key for device in fleet.devices for key in device.properties} | set(RESERVED)
    healthy = np.array([kind.healthy for kind in fleet.kinds], dtype=np.int64)
    out_of_reach = set()
    for cls, row in zip(fleet.selecting, fleet.selects, strict=True):
        if not row.any():
            out_of_reach.add(cls.name)
            missing = sorted(keys_of((cls,)) - keys)
            why = f"; no device has {', '.join(missing)}" if missing else ""
            yield LintFinding(
                cls.name, LintKind.UNREACHABLE, f"selects no device of this fleet{why}"
            )
        elif not healthy[row].any():
            yield LintFinding(cls.name, LintKind.UNREACHABLE, "selects only unhealthy devices")
    out_of_reach |= {cls.name for cls in fleet.classes} - {cls.name for cls in fleet.selecting}
    yield from _unreachable_by_members(fleet.classes, out_of_reach)


def _unreachable_by_members(
    classes: Sequence[DeviceClass], out_of_reach: set[str]
) -> Iterator[LintFinding]:
    by_name = {cls.name: cls for cls in classes}
    broken = hierarchy.problems_by_class(by_name)
    for cls in classes:
        if cls.members and cls.name not in broken:
            lacking = sorted(hierarchy.leaves(cls, by_name) & out_of_reach)
            if lacking:
                message = f"no device of this fleet is selected by its part {', '.join(lacking)}"
                yield LintFinding(cls.name, LintKind.UNREACHABLE, message)


def _containment(fleet: _Fleet) -> Iterator[LintFinding]:
    """Identical and subsumed classes: for any device where that is certain, else on this fleet."""
    count = fleet.shared_weights(np.ones(len(fleet.kinds), dtype=np.int64))
    alone = count.diagonal()
    inside = count == alone[:, None]
    reached = alone > 0
    for at, cls in enumerate(fleet.selecting):
        wider: dict[tuple[LintKind, bool], list[str]] = {}
        for other in np.flatnonzero(inside[at]):
            if other != at:
                both = bool(inside[other, at])
                found = _relation(fleet.meanings[at], fleet.meanings[other], both, reached[at])
                if found:
                    wider.setdefault(found, []).append(fleet.selecting[other].name)
        for (kind, certain), names in wider.items():
            scope = "for any device" if certain else "on this fleet"
            words = (
                "selects the same as" if kind is LintKind.IDENTICAL else "selects nothing beside"
            )
            yield LintFinding(cls.name, kind, f"{words} {_names(names)}, {scope}")


def _relation(
    one: Meaning, other: Meaning, both: bool, reached: bool
) -> tuple[LintKind, bool] | None:
    """How the first is contained in the second, and whether that holds for any device."""
    if one.implies(other):
        if both and other.implies(one):
            return LintKind.IDENTICAL, True
        return LintKind.SUBSUMED, True
    # Classes that select nothing here are contained in everything here: that says nothing.
    if not reached:
        return None
    return (LintKind.IDENTICAL if both else LintKind.SUBSUMED), False


def _overlapping(fleet: _Fleet) -> Iterator[LintFinding]:
    """Classes that share devices without one containing the other."""
    units = fleet.shared_weights(fleet.units)
    count = fleet.shared_weights(np.ones(len(fleet.kinds), dtype=np.int64))
    inside = count == count.diagonal()[:, None]
    partly = (count > 0) & ~inside & ~inside.T
    for at, cls in enumerate(fleet.selecting):
        others = sorted(np.flatnonzero(partly[at]), key=lambda other: -units[at, other])
        if others:
            names = [f"{fleet.selecting[other].name} ({units[at, other]})" for other in others]
            yield LintFinding(
                cls.name,
                LintKind.OVERLAPPING,
                f"of its {units[at, at]} units on this fleet some are shared with {_names(names)}",
            )


def _names(names: Sequence[str]) -> str:
    rest = len(names) - MOST_CLASSES_NAMED
    return ", ".join(names[:MOST_CLASSES_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _key_slips(fleet: _Fleet) -> Iterator[LintFinding]:
    having: dict[str, int] = dict.fromkeys(RESERVED, len(fleet.devices))
    for device in fleet.devices:
        for key in device.properties:
            having[key] = having.get(key, 0) + 1
    for cls in fleet.classes:
        for key in sorted(keys_of((cls,)) | set(cls.same)):
            for message in _near_misses(key, having):
                yield LintFinding(cls.name, LintKind.NEAR_MISS, message)


def _near_misses(key: str, having: Mapping[str, int]) -> Iterator[str]:
    """In words; `having` tells how many devices have each key that there is."""
    for other, number in having.items():
        if other == key:
            continue
        if other.casefold() == key.casefold():
            # Even where some devices have the key: the others are passed over silently.
            yield f"key {key!r} is not {other!r}, which {_have(number)}: case matters"
        elif key not in having and is_one_off(key, other):
            yield f"no device has the key {key!r}, but {other!r} is there: {_have(number)} it"


def _have(number: int) -> str:
    return f"{number} device has" if number == 1 else f"{number} devices have"


def is_one_off(one: str, other: str) -> bool:
    """One character inserted, left out or exchanged makes the one the other."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or one == other:
        return False
    same = next(
        (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(short) == len(long):
        return short[same + 1 :] == long[same + 1 :]
    return short[same:] == long[same + 1 :]


def _dimensions(fleet: _Fleet) -> Iterator[LintFinding]:
    values: dict[str, set[str]] = {}
    for kind in fleet.kinds:
        for key, value in kind.attributes.items():
            values.setdefault(key, set()).add(value)
    for cls in fleet.selecting:
        if not _may_mismatch(cls, values):
            continue
        seen: dict[str, tuple[Mismatch, int]] = {}
        for kind in fleet.kinds:
            for each in mismatches(cls.selector, kind.attributes):
                first, number = seen.get(str(each.expression), (each, 0))
                seen[str(each.expression)] = first, number + len(kind.devices)
        for each, number in seen.values():
            plural = "s" if number > 1 else ""
            message = f"can never hold on {number} device{plural} of this fleet: {each}"
            yield LintFinding(cls.name, LintKind.DIMENSION, message)


def _may_mismatch(cls: DeviceClass, values: Mapping[str, set[str]]) -> bool:
    """Most classes are done with after a look at the few values that a key has."""
    return any(
        mismatch(each, value)
        for branch in cls.selector
        for each in branch
        for value in values.get(each.key, ())
    )
