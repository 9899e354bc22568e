"""`dovetail agent state`: who holds what on this node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from dovetail.cli.agent.client import ask, control_option
from dovetail.cli.support.output import count_text, output_option, paint, printable, show, table

COLUMNS = ("POD", "ROLE", "CONTAINER", "RESOURCE", "QUANTITY", "GIVEN")


@click.command("state")
@output_option
@control_option
def command(control: str, form: str) -> None:
    """Show which pods hold what on this node."""
    answer = ask(control, "State")
    show(form, answer, lambda: lines(answer))


def lines(answer: dict[str, Any]) -> Iterator[str]:
    rows = [row for pod in answer["pods"] for row in rows_of(pod)]
    if rows:
        yield from table(COLUMNS, rows)
    else:
        yield "No pod holds anything."
    for name, amount in answer["node"]["resources"].items():
        capacity, allocatable = number(amount["capacity"]), number(amount["allocatable"])
        yield f"node: {printable(name)} capacity {capacity}, allocatable {allocatable}"
    for name in answer["node"]["removed"]:
        yield f"node: {printable(name)} is gone"
    for each in answer["removals"]:
        waiting = ", ".join(each["waiting_for"])
        yield f"{printable(each['uid'])} is over; not told yet: {printable(waiting)}"
    for trouble in answer["troubles"]:
        yield f"{paint('trouble', 'red')}: {printable(trouble)}"
    yield f"{count_text(len(answer['pods']), 'pod')}."


def rows_of(pod: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each resource; pod and container are named once."""
    left, role = f"{pod['namespace']}/{pod['name']}", pod["role"]
    for container in pod["containers"]:
        name = container["name"]
        given = {
            resource: (number(info["allocated_quantity"]), shown(info))
            for resource, info in container["allocations"].items()
        }
        given |= dict.fromkeys(container["missing"], ("", "(its plugin is down)"))
        for resource, (quantity, result) in (given or {"": ("", "")}).items():
            yield left, role, name, resource, quantity, result
            left = role = name = ""
    if left:
        yield left, role, "", "", "", "" if pod["admitted"] else "(being admitted)"


def shown(info: dict[str, Any]) -> str:
    """What the container has of it, in a few words."""
    parts = []
    if ids := info.get("device_ids"):
        parts.append(f"device {', '.join(ids)}")
    if info["oci_property_name"]:
        parts.append(f"{info['oci_property_name']}={info['allocation_result']}")
    parts += [f"{name}={value}" for name, value in sorted(info["envs"].items())]
    parts += [f"{name}={value}" for name, value in sorted(info["annotations"].items())]
    parts += [each["container_path"] for each in (*info["devices"], *info["mounts"])]
    parts += [f"cdi {name}" for name in info.get("cdi_devices", ())]
    return " ".join(parts)


def number(quantity: float) -> str:
    """Whole numbers without a point: bytes are such."""
    return f"{int(quantity)}" if quantity == int(quantity) else f"{quantity:g}"
