"""What `dovetail machines list` shows: units, holders, and those who wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dovetail.cli.machines import sources
from dovetail.cli.support.exits import NoPermission
from dovetail.cli.support.output import paint, printable, table
from dovetail.machines.documents import Machine
from dovetail.machines.preview.listing import listing_of
from dovetail.machines.selling.recurrence import BadTime
from dovetail.machines.selling.windows import time_of

INDENT = "  "
NOT_JUDGED = "it was not judged yet: does the operator run?"
USAGE = ("maximum", "reserved", "used", "waiting", "free")
TELLING = {"Accepted": True, "Ready": True, "StockShort": False, "Unserved": False}
"""Conditions, and the status in which nothing is said about them."""


def listings(options: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """From the cluster; from what the operator tells, for those who may see Machines alone."""
    try:
        state = sources.read(**options)
    except NoPermission:
        told_of = sources.chosen(sources.read_machines(options["kubeconfig"]), name)
        return {"machines": [told_listing(each) for each in told_of], "refused": []}
    found: dict[str, Any] = {"machines": [], "refused": []}
    for each in sources.chosen(state.machines.values(), name):
        snapshot = sources.snapshot_of(state, each)
        if snapshot is not None:
            found["machines"].append(msgspec.to_builtins(listing_of(snapshot)))
        else:
            faults = list(state.accepted.faults_of(each)) or [NOT_JUDGED]
            refusal = {"machine": each.metadata.name, "group": each.group, "faults": faults}
            found["refused"].append(refusal)
    return found


def told_listing(machine: Machine) -> dict[str, Any]:
    """The same from the status, which has the first hundred holders of a type."""
    status = machine.status
    return {
        "machine": machine.metadata.name,
        "group": machine.group,
        "generation": machine.metadata.generation,
        "acceptedGeneration": status.accepted_generation,
        "conditions": [
            {
                "type": each.type,
                "status": each.status == "True",
                "reason": each.reason,
                "message": each.message,
            }
            for each in status.conditions
        ],
        "types": [
            {"name": each["name"], **each["usage"], "free": each.get("free", 0)}
            for each in status.available_machines
        ],
        "holders": list(status.holders),
        "waiting": list(status.waiting),
        "windows": list(status.windows),
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    if not found["machines"] and not found["refused"]:
        yield "There is none."
        return
    machines = found["machines"]
    if machines:
        yield from units(machines)
    for each in machines:
        yield from told(each)
    for each in found["refused"]:
        name = paint(printable(each["machine"]), "red", bold=True)
        yield f"{name} is not accepted: {printable('; '.join(each['faults']))}"
    yield from _part("Holders", holders(machines))
    yield from _part("Waiting", waiting(machines))
    yield from _part("Windows", windows(machines))


def _part(title: str, rows: Sequence[str]) -> Iterator[str]:
    if len(rows) > 1:
        yield from ("", paint(title, bold=True), *(f"{INDENT}{row}" for row in rows))


def units(machines: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        (each["machine"], kind["name"], *(amount(kind[key]) for key in USAGE))
        for each in machines
        for kind in each["types"]
    ]
    return table(("MACHINE", "TYPE", *(key.upper() for key in USAGE)), rows)


def amount(number: float) -> int | str:
    """Units of a parent may be in parts."""
    return number if isinstance(number, int) else f"{number:g}"


def told(machine: dict[str, Any]) -> Iterator[str]:
    """Conditions that are not as they should be."""
    for each in machine["conditions"]:
        if each["status"] is not TELLING.get(each["type"], each["status"]):
            reason = paint(each["reason"], "yellow")
            yield f"{printable(machine['machine'])}: {reason}: {printable(each['message'])}"


def holders(machines: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        (
            each["type"],
            f"{each['namespace']}/{each['pod']}",
            each["user"],
            each["node"],
            age(each["since"]),
            each.get("expires", ""),
        )
        for machine in machines
        for each in machine["holders"]
    ]
    return table(("TYPE", "POD", "USER", "NODE", "AGE", "LEASE ENDS"), rows)


def waiting(machines: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        (
            each["type"],
            f"{each['namespace']}/{each['pod']}",
            age(each["since"]),
            each["reason"],
            each["message"],
        )
        for machine in machines
        for each in machine["waiting"]
    ]
    return table(("TYPE", "POD", "AGE", "REASON", "MESSAGE"), rows)


def windows(machines: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        (each["type"], each["name"], each["start"], each["end"], each["units"], each["held"])
        for machine in machines
        for each in machine["windows"]
    ]
    return table(("TYPE", "WINDOW", "START", "END", "UNITS", "HELD"), rows)


def age(since: str, at: datetime | None = None) -> str:
    """In the largest unit that tells two ages apart, as `kubectl get` writes them."""
    try:
        passed = (at or sources.now()) - time_of(since)
    except BadTime:
        return ""
    for size, name in ((timedelta(days=1), "d"), (timedelta(hours=1), "h")):
        if passed >= 2 * size:
            return f"{passed // size}{name}"
    minutes = timedelta(minutes=1)
    if passed >= 2 * minutes:
        return f"{passed // minutes}m"
    return f"{max(int(passed.total_seconds()), 0)}s"
