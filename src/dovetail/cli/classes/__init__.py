"""`dovetail classes`: resource classes, what they select, and what is odd about them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dovetail.cli.classes import sources, views
from dovetail.cli.support import exits
from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.exits import RequestRefused
from dovetail.cli.support.output import output_option, printing, show, text

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
classes_option = click.option(
    "--classes",
    "class_file",
    type=FILE,
    help="Classes of this file (YAML or JSON) instead of the server's.",
)
devices_option = click.option(
    "--devices",
    "device_file",
    type=FILE,
    help="Devices of this file instead of the server's; an empty one: no fleet.",
)
document_option = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    help="How to write the document.",
)


@click.group()
def classes() -> None:
    """Show resource classes, which devices they select and why, and what is odd about them."""


@classes.command("list")
@output_option
@talks_to_server()
def listing(server: ServerClient, form: str) -> None:
    """List resource classes, with how many units there are of each."""
    found = server.get(sources.CLASSES)
    show(form, found, lambda: views.listing(found["classes"]))


@classes.command("show")
@click.argument("name", metavar="CLASS")
@output_option
@talks_to_server()
def show_one(server: ServerClient, name: str, form: str) -> None:
    """Show one resource class: what it selects, and how many units there are."""
    found = server.get(f"{sources.CLASSES}/{segment(name)}")
    show(form, found, lambda: views.one(found))


@classes.command("explain")
@click.argument("name", metavar="CLASS")
@click.option("--node", help="Each device of this node, instead of all devices together.")
@classes_option
@devices_option
@output_option
@talks_to_server()
def explain_one(
    *,
    server: ServerClient,
    name: str,
    node: str | None,
    class_file: Path | None,
    device_file: Path | None,
    form: str,
) -> None:
    """Say which devices a class selects, and why not the others.

    Exits with 1 if it selects none.
    """
    from dovetail.devices.classes.explain import explain_each, explain_fleet

    definition = chosen(sources.classes(server, class_file), name)
    devices = sources.devices(server, device_file)
    if node is None:
        told, lines = explain_fleet(definition, devices), views.over_the_fleet
    else:
        mine = [device for device in devices if device.node == node]
        if not mine:
            raise RequestRefused(f"No device of node {node!r} is known.")
        told, lines = explain_each(definition, mine), views.device_by_device
    show(form, views.plain(told), lambda: lines(definition, told))
    sys.exit(0 if told.explanation.fitting else exits.NO)


@classes.command("lint")
@classes_option
@devices_option
@output_option
@talks_to_server()
def lint_all(
    *, server: ServerClient, class_file: Path | None, device_file: Path | None, form: str
) -> None:
    """Look for classes that are likely to be mistakes.

    Empty ones, those that no device of the fleet can meet, those that select the same or part of
    what others do, misspelt keys, and comparisons that mean nothing. Exits with 1 if there are any.
    """
    from dovetail.devices.classes.lint import lint

    definitions = sources.classes(server, class_file)
    found = lint(list(definitions.values()), sources.devices(server, device_file))
    show(form, {"findings": views.plain(found)}, lambda: views.findings(len(definitions), found))
    sys.exit(exits.NO if found else 0)


@classes.command("to-dra")
@click.argument("name", metavar="CLASS")
@classes_option
@document_option
@talks_to_server()
def to_dra(*, server: ServerClient, name: str, class_file: Path | None, form: str) -> None:
    """Write a class as a DeviceClass of Kubernetes' dynamic resource allocation."""
    from dovetail.devices.classes.dra import Untranslatable, to_device_class

    definition = chosen(sources.classes(server, class_file), name)
    try:
        document = to_device_class(definition)
    except Untranslatable as error:
        raise click.ClickException(str(error)) from error
    write(form, document)


@classes.command("from-dra")
@click.argument("file", type=FILE)
@document_option
def from_dra(file: Path, form: str) -> None:
    """Write the DeviceClass of FILE as a resource class."""
    from dovetail.devices.classes.documents import BadClass
    from dovetail.devices.classes.dra import Untranslatable, from_device_class

    try:
        found = from_device_class(sources.document(file))
    except (Untranslatable, BadClass) as error:
        raise click.ClickException(f"{file}: {error}") from error
    write(form, sources.manifest(found))


def chosen(definitions: sources.Definitions, name: str) -> Any:
    found = definitions.get(name)
    if found is None:
        known = ", ".join(definitions) or "none"
        raise RequestRefused(f"No resource class {name!r} is defined; there is {known}.")
    return found


def write(form: str, document: dict[str, Any]) -> None:
    with printing():
        for line in text(form, document, tuple):
            click.echo(line)
