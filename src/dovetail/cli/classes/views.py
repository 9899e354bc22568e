"""Text of resource classes and their explanations for `dovetail classes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from dovetail.cli.support.output import paint, printable, table
from dovetail.core.explanation import Finding, PlaceFindings, Reason
from dovetail.core.selectors import condition_text
from dovetail.devices.classes.documents import DeviceClass, read
from dovetail.devices.classes.explain import ClassExplanation, members_text

if TYPE_CHECKING:
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
        yield members_text(definition)
    for branch in definition.selector:
        yield condition_text.write(branch) or "nothing"


def over_the_fleet(definition: DeviceClass, found: ClassExplanation) -> Iterator[str]:
    told = found.explanation
    if definition.members:
        yield printable(told.summary)
        return
    yield paint(printable(told.summary), bold=True)
    several = len(definition.selector) > 1
    for number in range(1, len(definition.selector) + 1):
        yield ""
        first = f"selector {number}, in the fleet" if several else "in the fleet"
        group = str(number) if several else None
        rows: list[tuple[int, str]] = [(told.total, first)]
        rows += [(stage.left, stage.words) for stage in told.funnel if stage.group == group]
        yield from table(("DEVICES LEFT", "AFTER"), rows)
    if told.nearest:
        yield ""
        yield "Nearest of those that are not selected:"
        for near in told.nearest:
            yield from missed(near)


def missed(near: PlaceFindings) -> Iterator[str]:
    like = f" and {near.alike - 1} like it" if near.alike and near.alike > 1 else ""
    yield f"{INDENT}{printable(near.name or '')}{like}"
    for finding in near.findings:
        yield f"{INDENT * 2}{printable(finding.words)}"


def device_by_device(definition: DeviceClass, found: ClassExplanation) -> Iterator[str]:
    if definition.members:
        yield printable(found.explanation.summary)
        return
    for place in found.explanation.nearest:
        verdict, colour = ("selected", "green") if place.fits else ("not selected", "red")
        yield paint(f"{printable(place.name or '')}: {verdict}", colour, bold=True)
        for number, judged in groupby(place.findings, key=lambda finding: finding.group):
            yield from of_selector(number, judged)


def of_selector(number: str | None, judged: Iterable[Finding]) -> Iterator[str]:
    """What one selector says of a device; `number` tells it from others."""
    if number:
        yield f"{INDENT}selector {number}:"
    indent = INDENT * (2 if number else 1)
    for finding in judged:
        if finding.reason is Reason.EMPTY_SELECTOR:
            yield f"{indent}{finding.words}"
            continue
        mark = paint("ok", "green") if finding.met else paint("no", "red")
        yield f"{indent}{mark}  {printable(finding.words)}"


def findings(classes: int, found: Sequence[LintFinding]) -> list[str]:
    if not found:
        return [f"Nothing is odd about {classes} class{'' if classes == 1 else 'es'}."]
    return table(
        ("CLASS", "FINDING", "WORDS"),
        [(each.class_name, each.kind, printable(each.message)) for each in found],
    )
