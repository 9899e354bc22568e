"""`dovetail whatif`: asks for candidates of a fleet with hosts added or gone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any
from uuid import uuid4

import click
import orjson

from dovetail.cli.ask import candidates
from dovetail.cli.support import exits, explanation, query
from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.names import Names
from dovetail.cli.support.output import count_text, output_option, show


@click.command()
@query.query_options
@click.option("--drain", multiple=True, metavar="HOST", help="Without this host; repeatable.")
@click.option(
    "--release",
    "released",
    multiple=True,
    metavar="CONSUMER",
    help="With what this consumer holds given back; repeatable.",
)
@click.option("--add", type=click.File("rb"), metavar="FILE", help="With the hosts of this file.")
@output_option
@talks_to_server()
def whatif(
    *,
    server: ServerClient,
    drain: tuple[str, ...],
    released: tuple[str, ...],
    add: IO[bytes] | None,
    form: str,
    **asked: Any,
) -> None:
    """Ask about a fleet that might be.

    QUERY as for `dovetail candidates`; FILE is a fleet file. Nothing is written. Exits with 1 if
    nothing would fit.
    """
    added = [] if add is None else list(trees(add))
    told: Names = {}
    for tree in added:
        told |= identified(tree, tree)
    question = query.prepare(server, **asked)
    supposed = {"query": question.text, "drain": drain, "release": released, "add": added}
    answer = server.call("POST", "/dovetail/v1/whatif", supposed)
    places = candidates.places_of(server, answer, told)
    found = {name: answer[name] for name in ("before", "after", "explanation")}
    found["candidates"] = places
    show(form, found, lambda: lines(found, question.names))
    if not places:
        sys.exit(exits.NO)


def trees(file: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            tree = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise click.UsageError(f"--add: line {number}: {error}") from error
        if not isinstance(tree, dict) or "name" not in tree:
            raise click.UsageError(f"--add: line {number}: only hosts can be added, by name")
        yield tree


def identified(node: dict[str, Any], root: dict[str, Any]) -> Names:
    """The names of a tree that the server will not know afterwards; UUIDs are made if missing."""
    node.setdefault("uuid", str(uuid4()))
    own = {"name": node.get("name"), "host": root.get("name")}
    told: Names = {str(node["uuid"]): own}
    children = node.get("children")
    for child in children if isinstance(children, list) else ():
        # What is no provider is for the server to refuse: it says where it stands.
        if isinstance(child, dict):
            told |= identified(child, root)
    return told


def lines(found: dict[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    before, after = found["before"]["hosts"], found["after"]["hosts"]
    yield f"It fits {count_text(before, 'host')} now, and would fit {after:,}."
    yield ""
    yield from explanation.lines(found["explanation"], names)
    if found["candidates"]:
        yield ""
        yield from candidates.lines(found["candidates"])
