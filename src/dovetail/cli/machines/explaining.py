"""What `dovetail machines explain` shows: one guest, why it waits, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.cli.machines import sources
from dovetail.cli.support.exits import RequestRefused
from dovetail.cli.support.explanation import laid_out
from dovetail.core.explanation import document
from dovetail.kube.machines.judging import seller_of, standing_machines
from dovetail.kube.machines.state import MachineState
from dovetail.machines.explaining.guest import explain_guest, explain_without_machine
from dovetail.machines.pods import group_of, is_guest, type_of
from dovetail.machines.preview.listing import listing_of
from dovetail.podfit.objects import Pod


def explained(state: MachineState, asked: str) -> dict[str, Any]:
    pod = guest_of(state, asked)
    group = group_of(pod)
    seller = seller_of(state, group)
    found: dict[str, Any] = {
        "pod": pod.key,
        "group": group,
        "type": type_of(pod),
        "machine": None,
        "line": None,
    }
    if seller is None:
        told = explain_without_machine(pod, standing_machines(state, group))
        return {**found, "explanation": document(told)}
    snapshot = state.snapshot(*seller, sources.now())
    line = [
        f"{each['namespace']}/{each['pod']}"
        for each in listing_of(snapshot).waiting
        if each["type"] == type_of(pod)
    ]
    if pod.key in line:
        found["line"] = {"position": line.index(pod.key) + 1, "length": len(line)}
    found["machine"] = seller[0].metadata.name
    return {**found, "explanation": document(explain_guest(snapshot, pod))}


def guest_of(state: MachineState, asked: str) -> Pod:
    """By uid, `namespace/name`, or name alone."""
    guests = [each for each in state.pods.values() if is_guest(each)]
    found = [
        each
        for each in guests
        if asked in (each.metadata.uid, each.key) or asked == each.metadata.name
    ]
    if len(found) > 1:
        names = ", ".join(sorted(each.key for each in found))
        raise RequestRefused(f"Several guests are called {asked!r}: {names}.")
    if not found:
        raise RequestRefused(
            f"No guest {asked!r}: no pod of that name has the labels of a machine group and type "
            "and of the pod role `guest`."
        )
    return found[0]


def lines(found: dict[str, Any]) -> Iterator[str]:
    yield from laid_out(found["explanation"], among="in the pool", ask="")
    if found["line"] is not None:
        yield ""
        yield f"Number {found['line']['position']} of {found['line']['length']} in the line."
