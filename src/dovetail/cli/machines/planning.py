"""What `dovetail machines plan` shows: faults by path, where the stock goes, what would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.cli.machines import sources
from dovetail.cli.support.output import paint, printable, table
from dovetail.kube.machines.acceptance import Accepted
from dovetail.kube.machines.judging import world_of
from dovetail.kube.machines.state import MachineState
from dovetail.machines.documents import Machine
from dovetail.machines.preview.dry_run import DryRun, dry_run
from dovetail.machines.preview.stock import FITS, UNSERVED
from dovetail.machines.validation.decoding import decoded

INDENT = "  "
COLOURS = {"fits": "green", "short": "red", "undecided": "yellow", "unserved": "yellow"}
SIGNS = {"create": "+", "change": "~", "delete": "-"}


def planned(state: MachineState, document: dict[str, Any]) -> dict[str, Any]:
    machine, faults = decoded(document)
    name = (document.get("metadata") or {}).get("name", "")
    found = DryRun(faults=faults)
    if machine is not None:
        found = tried(state, machine)
        found = replace(found, faults=(*faults, *found.faults))
    return {
        "machine": name,
        "accepted": found.is_accepted,
        "fits": all(each.verdict in (FITS, UNSERVED) for each in found.stock),
        **msgspec.to_builtins(found),
    }


def tried(state: MachineState, machine: Machine) -> DryRun:
    """In the place of the Machine that has its name, if there is one."""
    there = state.machines.get(machine.metadata.name)
    generation = 1 if there is None else there.metadata.generation + 1
    uid = "" if there is None else there.metadata.uid
    meta = replace(machine.metadata, uid=uid, generation=generation)
    new = replace(machine, metadata=meta)
    accepted = Accepted(uid, generation, new.spec)
    return dry_run(state.snapshot(new, accepted, sources.now()), world_of(state, new, there))


def lines(found: dict[str, Any]) -> Iterator[str]:
    name = printable(found["machine"])
    if not found["accepted"]:
        yield paint(f"{name} would not be accepted.", "red", bold=True)
        for each in found["faults"]:
            path = f"{each['path']}: " if each["path"] else ""
            yield f"{INDENT}{printable(path)}{printable(each['message'])}"
        return
    if found["fits"]:
        yield paint(f"{name} would be accepted, and its stock fits.", "green", bold=True)
    else:
        yield paint(
            f"{name} would be accepted, but not all of its stock is known to fit.",
            "yellow",
            bold=True,
        )
    yield ""
    yield from stock(found["stock"])
    yield from _part("Objects", objects(found["objects"]))
    yield from _part("Nodes", nodes(found["nodes"]))
    yield from _part("Guests that keep their units", guests(found["guests"]))
    yield from _part("Guests that would be sold one at once", guests(found["sold"]))
    if not found["objects"] and not found["nodes"]:
        yield ""
        yield "Nothing would change."


def _part(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield from ("", paint(f"{title}:", bold=True), *(f"{INDENT}{row}" for row in rows))


def stock(found: list[dict[str, Any]]) -> list[str]:
    rows = []
    for each in found:
        places = ", ".join(f"{node}:{count}" for node, count in each["after"].items())
        moved = "" if each["before"] == each["after"] else before(each["before"])
        rows.append((each["type"], each["wanted"], each["verdict"], places + moved, why(each)))
    columns = ("TYPE", "TO HOLD", "VERDICT", "WHERE", "BLOCKED BY")
    shown = len(columns) - (not any(row[-1] for row in rows))
    head, *body = table(columns[:shown], [row[:shown] for row in rows])
    return [head, *map(painted, body, (each["verdict"] for each in found))]


def before(places: dict[str, int]) -> str:
    there = ", ".join(f"{node}:{count}" for node, count in places.items())
    return f" (now {there})" if there else ""


def painted(line: str, verdict: str) -> str:
    return line.replace(f" {verdict} ", f" {paint(verdict, COLOURS[verdict])} ", 1)


def why(stock_of_type: dict[str, Any]) -> str:
    node, words = stock_of_type["node"], stock_of_type["words"]
    return f"{node}: {words}" if node else str(words)


def objects(found: list[dict[str, Any]]) -> list[str]:
    return [
        line
        for each in found
        for line in (
            f"{SIGNS[each['action']]} {each['kind']} {printable(each['name'])}",
            *(f"{INDENT * 2}{printable(field)}" for field in each["fields"]),
        )
    ]


def nodes(found: list[dict[str, Any]]) -> list[str]:
    return [
        line
        for each in found
        for line in (
            printable(each["name"]),
            *(f"{INDENT}+ {printable(mark)}" for mark in each["added"]),
            *(f"{INDENT}- {printable(mark)}" for mark in each["removed"]),
        )
    ]


def guests(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    rows = [(each["pod"], each["type"], each["node"], each["words"]) for each in found]
    return table(("POD", "TYPE", "NODE", "NOTE"), rows)
