"""Why a class selects a device or does not: per selector and expression, and over a whole fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dovetail.core.device import Device
from dovetail.core.selectors.selector import Expression, Operator, condition, mismatch
from dovetail.devices.classes.alike import DeviceGroup, grouped, keys_of
from dovetail.devices.classes.documents import DeviceClass

WORDS = {
    Operator.GT: "more than",
    Operator.GT_EQ: "at least",
    Operator.LT: "less than",
    Operator.LT_EQ: "at most",
}


class Verdict(msgspec.Struct, frozen=True):
    """One expression on one device."""

    expression: Expression
    met: bool
    seen: str | None
    """The device's value; None if it has no such key."""
    words: str


class Branch(msgspec.Struct, frozen=True):
    """One selector of the class: met if all of its verdicts are, and there is one."""

    met: bool
    verdicts: tuple[Verdict, ...]


class Explanation(msgspec.Struct, frozen=True):
    class_name: str
    node: str
    device: str
    selected: bool
    branches: tuple[Branch, ...]


class Step(msgspec.Struct, frozen=True):
    """One expression over the fleet."""

    expression: Expression
    met: int
    """Devices that meet it."""
    left: int
    """Devices that meet it and all before it in its selector."""


class Near(msgspec.Struct, frozen=True):
    """A device that is not selected, and what it lacks in the selector it comes nearest to."""

    node: str
    device: str
    alike: int
    """Devices that lack just the same, itself included."""
    branch: int
    lacks: tuple[Verdict, ...]


class Overview(msgspec.Struct, frozen=True):
    class_name: str
    devices: int
    selected: int
    units: int
    """Of the selected devices."""
    healthy: int
    """Of these, units of healthy devices."""
    branches: tuple[tuple[Step, ...], ...]
    nearest: tuple[Near, ...]


def explain(cls: DeviceClass, device: Device) -> Explanation:
    """A class with members selects nothing itself: its branches are empty."""
    branches = _branches(cls, device.attributes)
    selected = any(branch.met for branch in branches)
    return Explanation(cls.name, device.node, device.name, selected, branches)


def _branches(cls: DeviceClass, attributes: Mapping[str, str]) -> tuple[Branch, ...]:
    return tuple(
        _branch(tuple(verdict(each, attributes.get(each.key)) for each in branch))
        for branch in cls.selector
    )


def _branch(verdicts: tuple[Verdict, ...]) -> Branch:
    return Branch(bool(verdicts) and all(each.met for each in verdicts), verdicts)


def verdict(expression: Expression, seen: str | None) -> Verdict:
    met = condition(expression)(seen)
    return Verdict(expression, met, seen, _words(expression, seen, met))


def _words(expression: Expression, seen: str | None, met: bool) -> str:
    if seen is None:
        return f"there is no {expression.key}"
    if not met and (strange := mismatch(expression, seen)):
        return str(strange)
    return f"{expression.key} is {seen!r}{_relation(expression, met)}"


def _relation(expression: Expression, met: bool) -> str:
    kind, values = expression.operator, ", ".join(expression.values)
    if not values:
        return ""
    negated = met is (kind is Operator.NOT_IN)
    several = "one of" if len(expression.values) > 1 else "equal to"
    return f", {'not ' if negated else ''}{WORDS.get(kind, several)} {values}"


def overview(cls: DeviceClass, devices: Sequence[Device], *, nearest: int = 5) -> Overview:
    """How many devices meet what, and which come nearest without being selected."""
    kinds = grouped(devices, keys_of((cls,)))
    judged = [(kind, _branches(cls, kind.attributes)) for kind in kinds]
    chosen: list[DeviceGroup] = []
    near: list[Near] = []
    for kind, branches in judged:
        if any(each.met for each in branches):
            chosen.append(kind)
        elif branches:
            near.append(_near(kind, branches))
    near.sort(key=lambda each: len(each.lacks))
    return Overview(
        cls.name,
        len(devices),
        sum(len(kind.devices) for kind in chosen),
        sum(kind.units for kind in chosen),
        sum(kind.healthy for kind in chosen),
        tuple(_steps(index, branch, judged) for index, branch in enumerate(cls.selector)),
        tuple(near[:nearest]),
    )


def _near(kind: DeviceGroup, branches: tuple[Branch, ...]) -> Near:
    lacking = [tuple(each for each in branch.verdicts if not each.met) for branch in branches]
    # A selector without expressions lacks nothing and still selects nothing.
    best = min(range(len(branches)), key=lambda at: (not branches[at].verdicts, len(lacking[at])))
    first = kind.devices[0]
    return Near(first.node, first.name, len(kind.devices), best, lacking[best])


def _steps(
    index: int,
    branch: tuple[Expression, ...],
    judged: Sequence[tuple[DeviceGroup, tuple[Branch, ...]]],
) -> tuple[Step, ...]:
    left = [True] * len(judged)
    steps = []
    for at, expression in enumerate(branch):
        met = [branches[index].verdicts[at].met for _, branches in judged]
        left = [before and now for before, now in zip(left, met, strict=True)]
        steps.append(Step(expression, _devices(judged, met), _devices(judged, left)))
    return tuple(steps)


def _devices(
    judged: Sequence[tuple[DeviceGroup, tuple[Branch, ...]]], chosen: Sequence[bool]
) -> int:
    return sum(len(kind.devices) for (kind, _), yes in zip(judged, chosen, strict=True) if yes)
