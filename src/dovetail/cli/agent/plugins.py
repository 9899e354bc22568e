"""`dovetail agent plugins`: who gives out resources on this node."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from dovetail.cli.agent.client import ask, control_option
from dovetail.cli.support.output import output_option, printable, show, table

COLUMNS = ("RESOURCE", "STATE", "SINCE", "OPTIONS", "SOCKET")
DEVICE_COLUMNS = ("DEVICE PLUGIN", "MODE", "STATE", "SINCE", "DEVICES", "HELD", "OPTIONS", "SOCKET")


@click.command("plugins")
@output_option
@control_option
def command(control: str, form: str) -> None:
    """Show resource plugins and device plugins, and how they fare."""
    answer = ask(control, "Plugins")
    show(form, answer, lambda: all_lines(answer))


def all_lines(answer: dict[str, Any]) -> Iterator[str]:
    yield from lines(answer["plugins"])
    if devices := answer.get("device_plugins"):
        yield ""
        yield from device_lines(devices)


def lines(plugins: list[dict[str, Any]]) -> Iterator[str]:
    if not plugins:
        yield "No plugins. They appear when their sockets are in a plugin directory."
        return
    yield from table(
        COLUMNS,
        (
            (
                each["resource"] or "?",
                each["state"],
                when(each["since"]),
                able(each),
                each["socket"],
            )
            for each in plugins
        ),
    )
    for each in plugins:
        if each["error"]:
            name = each["resource"] or each["socket"]
            retry = f"; next attempt {when(each['next_retry'])}" if each["next_retry"] else ""
            yield f"{printable(name)}: {printable(each['error'])}{retry}"


def device_lines(plugins: list[dict[str, Any]]) -> Iterator[str]:
    yield from table(
        DEVICE_COLUMNS,
        (
            (
                each["resource"],
                each["mode"],
                each["state"],
                when(each["since"]),
                f"{each['healthy']} of {each['devices']} healthy",
                held(each),
                able(each),
                each["socket"],
            )
            for each in plugins
        ),
    )
    for each in plugins:
        retry = f"; next attempt {when(each['next_retry'])}" if each["next_retry"] else ""
        if each["error"]:
            yield f"{printable(each['resource'])}: {printable(each['error'])}{retry}"
        if each["kubelet"]:
            yield f"{printable(each['resource'])}: at the kubelet: {printable(each['kubelet'])}"


def held(plugin: dict[str, Any]) -> str:
    words = f"{plugin['held_by_classes']} by classes"
    shared = f", {plugin['held_by_kubelet']} by kubelet" if plugin["mode"] == "shared" else ""
    return words + shared


def able(plugin: dict[str, Any]) -> str:
    options = plugin["options"] or {}
    words = {
        "with_topology_alignment": "alignment",
        "need_reconcile": "reconcile",
        "pre_start_required": "pre-start",
        "preferred_allocation": "preferred",
        "deallocates": "deallocate",
    }
    return ",".join(word for name, word in words.items() if options.get(name))


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
