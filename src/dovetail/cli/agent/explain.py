"""`dovetail agent explain`: why a pod got what it got, or was not let in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from dovetail.cli.agent.client import ask, control_option
from dovetail.cli.agent.plugins import when
from dovetail.cli.agent.state import number, shown
from dovetail.cli.support.output import output_option, paint, printable, show


@click.command("explain")
@click.argument("pod")
@output_option
@control_option
def command(control: str, form: str, pod: str) -> None:
    """Say what POD was given on this node and how that came about, or why not.

    POD is a name, namespace/name, or a uid. Of each pod the latest admissions are kept in mind,
    and those of pods that were not let in, too.
    """
    answer = ask(control, "Explain", {"pod": pod})
    show(form, answer, lambda: lines(answer))


def lines(answer: dict[str, Any]) -> Iterator[str]:
    for each in answer["admissions"]:
        yield from admission(each)
    told = {each["uid"] for each in answer["admissions"]}
    for pod in answer["pods"]:
        if pod["uid"] not in told:
            yield f"{name_of(pod)}: admitted before the agent started, {when(pod['at'])}"
        yield from holds(pod)


def admission(record: dict[str, Any]) -> Iterator[str]:
    container = f", container {printable(record['container'])}" if "container" in record else ""
    result = record.get("result", "admitted")
    colour = "green" if result in ("admitted", "skipped") else "red"
    role = f" (role {printable(record['role'])})" if "role" in record else ""
    head = f"{when(record['at'])} {name_of(record)}{container}{role}: {paint(result, colour)}"
    reason = f", {record['reason']}" if "reason" in record else ""
    yield head + reason
    if "words" in record:
        later = " It may succeed later by itself." if record.get("later") else ""
        yield f"  {printable(record['words'])}{'' if not later else '.' + later}"
    for each in record.get("resources", ()):
        yield from resource(each)


def resource(record: dict[str, Any]) -> Iterator[str]:
    who = f"{record['container']}: " if "container" in record else ""
    limit = f", limit {record['limit']}" if "limit" in record else ""
    amount = f" {record['requested']}" if "requested" in record else ""
    yield f"  {printable(who)}{printable(record['resource'])}{amount}{limit}"
    if "hints" in record:
        offered = "; ".join(map(hint, record["hints"])) or "nowhere"
        yield f"    the plugin offered {offered}"
    if record.get("merged"):
        yield f"    all resources together: {hint(record['merged'])}"
    if record.get("reused"):
        yield "    it had enough from before"
    if record.get("missing"):
        yield f"    without its plugin: {printable(record['missing'])}"
    if record.get("allocation"):
        given = record["allocation"]
        quantity = number(given["allocated_quantity"])
        yield f"    given {quantity}: {printable(shown(given))}"


def hint(found: dict[str, Any]) -> str:
    where = "any node" if found["nodes"] is None else f"node {found['nodes']}"
    return f"{where} (preferred)" if found["preferred"] else where


def holds(pod: dict[str, Any]) -> Iterator[str]:
    yield f"{name_of(pod)} holds now"
    for container in pod["containers"]:
        given = [
            f"{resource} {number(info['allocated_quantity'])} ({shown(info)})"
            for resource, info in container["allocations"].items()
        ]
        missing = [f"no {each}: its plugin was down" for each in container["missing"]]
        told = "; ".join([*given, *missing]) or "nothing"
        yield f"  {printable(container['name'])}: {printable(told)}"


def name_of(pod: dict[str, Any]) -> str:
    return printable(f"{pod['namespace']}/{pod['name']}")
