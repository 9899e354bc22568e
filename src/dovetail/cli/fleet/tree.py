"""`dovetail tree`: draws hosts as trees of providers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from dovetail.cli.fleet.provider_trees import find_provider, read_trees
from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.output import amounts, output_option, paint, printable, show
from dovetail.cli.support.tree_text import Node, tree_lines


@click.command()
@click.argument("host", required=False)
@click.option("-v", "--verbose", is_flag=True, help="Also traits, aggregates and attributes.")
@click.option("--consumers", is_flag=True, help="Also who holds what.")
@output_option
@talks_to_server()
def tree(server: ServerClient, host: str | None, verbose: bool, consumers: bool, form: str) -> None:
    """Draw hosts with what they have and give.

    Inventories read used/capacity. HOST is the name or UUID of a host, or of a provider in one,
    from which on down is drawn; without it, all hosts are.
    """
    nodes = read_trees(server, host)
    found = find_provider(nodes, host) if host is not None else None
    shown = nodes if found is None else [found]
    show(form, {"trees": shown}, lambda: lines(shown, verbose=verbose, consumers=consumers))


def lines(nodes: list[Node], *, verbose: bool, consumers: bool) -> Iterator[str]:
    for node in nodes:
        drawn = list(tree_lines(node))
        width = max(len(item.label) for item in drawn)
        for item in drawn:
            name = paint(printable(item.node["name"]), bold=True)
            gap = " " * (width - len(item.label) + 2)
            yield f"{item.lead}{name}{gap}{inventories(item.node)}".rstrip()
            for note in notes(item.node, verbose=verbose, consumers=consumers):
                yield f"{item.onward}{note}"


def inventories(node: Node) -> str:
    return "  ".join(
        f"{name} {stock['used']:,}/{stock['capacity']:,}"
        for name, stock in node["inventories"].items()
    )


def notes(node: Node, *, verbose: bool, consumers: bool) -> Iterator[str]:
    if verbose and node["traits"]:
        yield f"traits: {' '.join(node['traits'])}"
    if verbose and node["aggregates"]:
        yield f"aggregates: {' '.join(node['aggregates'])}"
    if verbose and node["attributes"]:
        pairs = (f"{key}={value}" for key, value in node["attributes"].items())
        yield f"attributes: {printable(' '.join(pairs))}"
    if consumers:
        yield from map(consumer_text, node["consumers"])


def consumer_text(consumer: dict[str, Any]) -> str:
    owner = printable(f"{consumer['project_id']}/{consumer['user_id']}")
    return f"{consumer['consumer']} ({owner}) holds {amounts(consumer['resources'])}"
