"""Resource classes laid out for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dovetail.cli.support.output import paint, printable, table
from dovetail.core.selectors import condition_text
from dovetail.devices.classes.documents import DeviceClass, read

if TYPE_CHECKING:
    from dovetail.devices.classes.explain import Branch, Explanation, Near, Overview
    from dovetail.devices.classes.lint import LintFinding

INDENT = "  "


def plain(found: Any) -> Any:
    """As data."""
    return msgspec.to_builtins(found)


def listing(found: Sequence[dict[str, Any]]) -> list[str]:
    if not found:
        return ["There is none."]
    headers = ("CLASS", "ALLOCATABLE", "REQUESTED", "AVAILABLE", "SELECTS")
    rows = [
        (
            each["name"],
            each["allocatable"],
            each["requested"],
            each["available"],
            "; ".join(selection(read(each["name"], each["spec"]))),
        )
        for each in found
    ]
    return table(headers, rows)


def one(found: dict[str, Any]) -> Iterator[str]:
    definition = read(found["name"], found["spec"])
    yield paint(printable(definition.name), bold=True)
    for line in selection(definition):
        yield f"{INDENT}{printable(line)}"
    if definition.single_device:
        yield f"{INDENT}all units of a request from one device"
    yield ""
    yield from table(
        ("ALLOCATABLE", "REQUESTED", "AVAILABLE"),
        [(found["allocatable"], found["requested"], found["available"])],
    )


def selection(definition: DeviceClass) -> Iterator[str]:
    """What a class selects, a line for each of its selectors."""
    if definition.members:
        parts = ", ".join(f"{member.count} {member.name}" for member in definition.members)
        same = f" with the same {', '.join(definition.same)}" if definition.same else ""
        yield f"made of {parts}{same}"
    for branch in definition.selector:
        yield condition_text.write(branch) or "nothing"


def overview(definition: DeviceClass, told: Overview) -> Iterator[str]:
    if definition.members:
        (line,) = selection(definition)
        yield f"{printable(definition.name)} selects no device itself: it is {printable(line)}."
        return
    some = f"{told.selected} of {told.devices} device{'' if told.devices == 1 else 's'}"
    units = f"{told.units} unit{'' if told.units == 1 else 's'}, {told.healthy} of them healthy"
    yield paint(f"{printable(definition.name)} selects {some}: {units}.", bold=True)
    for at, steps in enumerate(told.branches, 1):
        yield ""
        first = "in the fleet" if len(told.branches) == 1 else f"selector {at}, in the fleet"
        rows: list[tuple[int, str]] = [(told.devices, first)]
        rows += [(step.left, condition_text.written(step.expression)) for step in steps]
        yield from table(("DEVICES LEFT", "AFTER"), rows)
    if told.nearest:
        yield ""
        yield "Nearest of those that are not selected:"
        for near in told.nearest:
            yield from missed(near)


def missed(near: Near) -> Iterator[str]:
    like = f" and {near.alike - 1} like it" if near.alike > 1 else ""
    yield f"{INDENT}{printable(f'{near.node}/{near.device}')}{like}"
    for verdict in near.lacks:
        yield f"{INDENT * 2}{printable(verdict.words)}"


def explanations(definition: DeviceClass, each: Sequence[Explanation]) -> Iterator[str]:
    if definition.members:
        (line,) = selection(definition)
        yield f"{printable(definition.name)} selects no device itself: it is {printable(line)}."
        return
    for told in each:
        name = printable(f"{told.node}/{told.device}")
        verdict, colour = ("selected", "green") if told.selected else ("not selected", "red")
        yield paint(f"{name}: {verdict}", colour, bold=True)
        for at, branch in enumerate(told.branches, 1):
            yield from judged(branch, at if len(told.branches) > 1 else 0)


def judged(branch: Branch, number: int) -> Iterator[str]:
    """What one selector says of a device; `number` tells it from others."""
    if number:
        yield f"{INDENT}selector {number}:"
    indent = INDENT * (2 if number else 1)
    if not branch.verdicts:
        yield f"{indent}has no expressions, so it selects nothing"
    for verdict in branch.verdicts:
        mark = paint("ok", "green") if verdict.met else paint("no", "red")
        yield f"{indent}{mark}  {printable(verdict.words)}"


def findings(classes: int, found: Sequence[LintFinding]) -> list[str]:
    if not found:
        return [f"Nothing is odd about {classes} class{'' if classes == 1 else 'es'}."]
    return table(
        ("CLASS", "FINDING", "WORDS"),
        [(each.class_name, each.kind, printable(each.message)) for each in found],
    )
