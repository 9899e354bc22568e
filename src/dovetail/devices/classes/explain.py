"""Explains why a device class selects devices or does not; `dovetail classes explain` shows it.

Each expression of each selector is judged: over all devices together, and on those devices that
come nearest, or that were asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dovetail.core.device import Device
from dovetail.core.explanation import (
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Reason,
    Stage,
    Verdict,
)
from dovetail.core.explanation_text import summary_of_devices
from dovetail.core.selectors import condition_text
from dovetail.core.selectors.selector import Expression, Operator, condition, mismatch
from dovetail.devices.classes.device_groups import DeviceGroup, groups_of, keys_of
from dovetail.devices.classes.documents import DeviceClass

WORDS = {
    Operator.GT: "more than",
    Operator.GT_EQ: "at least",
    Operator.LT: "less than",
    Operator.LT_EQ: "at most",
}
EMPTY = "has no expressions, so it selects nothing"

Judged = tuple[tuple[bool, ...], ...]
"""By selector of a class, and by expression of the selector: whether it is met."""


class ClassExplanation(msgspec.Struct, frozen=True):
    """A class with members selects nothing itself: there is no funnel then, and nothing near."""

    class_name: str
    units: int
    """Of the selected devices."""
    healthy: int
    """Of these, units of healthy devices."""
    explanation: Explanation


def explain_fleet(
    cls: DeviceClass, devices: Sequence[Device], *, nearest: int = 5
) -> ClassExplanation:
    """How many devices meet what, and which come nearest without being selected."""
    judged = _judged_groups(cls, devices)
    near = [
        _nearest(cls, group, met) for group, met in judged if cls.selector and not is_selected(met)
    ]
    near.sort(key=lambda each: len(each.findings))
    return _explanation(cls, devices, judged, near[:nearest])


def explain_each(cls: DeviceClass, devices: Sequence[Device]) -> ClassExplanation:
    """What every single device meets and lacks."""
    judged = _judged_groups(cls, devices)
    places = [_place(cls, device) for device in devices] if cls.selector else []
    return _explanation(cls, devices, judged, places)


def is_selected(judged: Judged) -> bool:
    """Whether a selector is met: all of its expressions are, and there is one."""
    return any(branch and all(branch) for branch in judged)


def _judged_groups(cls: DeviceClass, devices: Sequence[Device]) -> list[tuple[DeviceGroup, Judged]]:
    groups = groups_of(devices, keys_of((cls,)))
    return [
        (
            group,
            tuple(
                tuple(condition(each)(group.attributes.get(each.key)) for each in branch)
                for branch in cls.selector
            ),
        )
        for group in groups
    ]


def _explanation(
    cls: DeviceClass,
    devices: Sequence[Device],
    judged: Sequence[tuple[DeviceGroup, Judged]],
    shown: Iterable[PlaceFindings],
) -> ClassExplanation:
    chosen = [group for group, met in judged if is_selected(met)]
    selected = sum(len(group.devices) for group in chosen)
    units, healthy = sum(each.units for each in chosen), sum(each.healthy for each in chosen)
    if cls.members:
        summary = f"{cls.name} selects no device itself: it is {members_text(cls)}."
    else:
        summary = summary_of_devices(cls.name, len(devices), selected, units, healthy)
    explanation = Explanation(
        verdict=Verdict.FITS if selected else Verdict.NEVER,
        summary=summary,
        of=Counted.DEVICES,
        total=len(devices),
        fitting=selected,
        funnel=tuple(
            stage for index in range(len(cls.selector)) for stage in _stages(cls, index, judged)
        ),
        nearest=tuple(shown),
        relaxations=(),
    )
    return ClassExplanation(cls.name, units, healthy, explanation)


def members_text(cls: DeviceClass) -> str:
    """What a class with members is made of."""
    parts = ", ".join(f"{member.count} {member.name}" for member in cls.members)
    same = f" with the same {', '.join(cls.same)}" if cls.same else ""
    return f"made of {parts}{same}"


def _number(cls: DeviceClass, index: int) -> str | None:
    """What tells a selector from the others of its class, from 1."""
    return str(index + 1) if len(cls.selector) > 1 else None


def _stages(
    cls: DeviceClass, index: int, judged: Sequence[tuple[DeviceGroup, Judged]]
) -> Iterable[Stage]:
    """The expressions of one selector over the devices."""
    left = [True] * len(judged)
    for at, expression in enumerate(cls.selector[index]):
        met = [each[index][at] for _, each in judged]
        left = [before and now for before, now in zip(left, met, strict=True)]
        text = condition_text.written(expression)
        yield Stage(
            reason=Reason.ATTRIBUTE,
            group=_number(cls, index),
            constraint=text,
            left=_devices(judged, left),
            words=text,
            met=_devices(judged, met),
        )


def _devices(judged: Sequence[tuple[DeviceGroup, Judged]], chosen: Sequence[bool]) -> int:
    return sum(len(group.devices) for (group, _), yes in zip(judged, chosen, strict=True) if yes)


def _nearest(cls: DeviceClass, group: DeviceGroup, judged: Judged) -> PlaceFindings:
    """What a device lacks in the selector that it comes nearest to."""
    # A selector without expressions lacks nothing and still selects nothing.
    best = min(range(len(judged)), key=lambda at: (not judged[at], judged[at].count(False)))
    device = group.devices[0]
    lacks = [each for each in _findings(cls, best, device) if not each.met]
    return PlaceFindings(
        name=f"{device.node}/{device.name}",
        uuid=None,
        fits=False,
        findings=tuple(lacks),
        alike=len(group.devices),
    )


def _place(cls: DeviceClass, device: Device) -> PlaceFindings:
    branches = [_findings(cls, index, device) for index in range(len(cls.selector))]
    return PlaceFindings(
        name=f"{device.node}/{device.name}",
        uuid=None,
        fits=is_selected(tuple(tuple(each.met for each in branch) for branch in branches)),
        findings=tuple(
            each
            for index, branch in enumerate(branches)
            for each in branch or [_empty_selector(cls, index, device)]
        ),
    )


def _findings(cls: DeviceClass, index: int, device: Device) -> list[Finding]:
    """Of one selector."""
    attributes = device.attributes
    return [
        _finding(each, attributes.get(each.key), _number(cls, index), device)
        for each in cls.selector[index]
    ]


def _finding(
    expression: Expression, seen: str | None, group: str | None, device: Device
) -> Finding:
    met = condition(expression)(seen)
    return Finding(
        reason=Reason.ATTRIBUTE,
        group=group,
        constraint=condition_text.written(expression),
        met=met,
        ever=met,
        provider=f"{device.node}/{device.name}",
        provider_uuid=None,
        words=_words(expression, seen, met),
        seen=seen,
    )


def _empty_selector(cls: DeviceClass, index: int, device: Device) -> Finding:
    return Finding(
        reason=Reason.EMPTY_SELECTOR,
        group=_number(cls, index),
        constraint="",
        met=False,
        ever=False,
        provider=f"{device.node}/{device.name}",
        provider_uuid=None,
        words=EMPTY,
    )


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
