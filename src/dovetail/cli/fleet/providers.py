"""`dovetail providers`: lists resource providers that pass filters."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlencode

import click

from dovetail.cli.support import exits
from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.names import is_uuid, look_up, uuid_of
from dovetail.cli.support.output import output_option, show, table


@click.command()
@click.argument("provider", required=False)
@click.option("--in-tree", metavar="PROVIDER", help="Only those of this host.")
@click.option(
    "-r",
    "--resource",
    "resources",
    multiple=True,
    metavar="CLASS:AMOUNT",
    help="Only those that could give so much now; may be repeated.",
)
@click.option(
    "--trait", "traits", multiple=True, metavar="[!]TRAIT", help="Only those with (or without) it."
)
@click.option(
    "--member-of", "aggregates", multiple=True, metavar="UUID", help="Only those of the aggregate."
)
@output_option
@talks_to_server()
def providers(
    *,
    server: ServerClient,
    provider: str | None,
    in_tree: str | None,
    resources: tuple[str, ...],
    traits: tuple[str, ...],
    aggregates: tuple[str, ...],
    form: str,
) -> None:
    """List providers.

    PROVIDER, a name or a UUID, lists only that one. Exits with 1 if there is none.
    """
    asked: list[tuple[str, str]] = []
    if provider is not None:
        asked.append(("uuid" if is_uuid(provider) else "name", provider))
    if in_tree is not None:
        asked.append(("in_tree", in_tree if is_uuid(in_tree) else uuid_of(server, in_tree)))
    if resources:
        asked.append(("resources", ",".join(resources)))
    asked += [("required", trait) for trait in traits]
    asked += [("member_of", aggregate) for aggregate in aggregates]
    found = listing(server, asked)
    show(form, {"providers": found}, lambda: lines(found))
    if not found:
        sys.exit(exits.NO)


def listing(server: ServerClient, asked: list[tuple[str, str]]) -> list[dict[str, Any]]:
    answer = server.get(f"/resource_providers?{urlencode(asked, safe=':,!')}")["resource_providers"]
    names = {found["uuid"]: found["name"] for found in answer}
    above = {
        found[key]
        for found in answer
        for key in ("parent_provider_uuid", "root_provider_uuid")
        if found[key] is not None
    }
    for uuid, known in look_up(server, above - names.keys()).items():
        names[uuid] = known["name"]
    return [
        {
            "name": found["name"],
            "uuid": found["uuid"],
            "generation": found["generation"],
            "parent": names.get(found["parent_provider_uuid"]),
            "host": names.get(found["root_provider_uuid"]),
        }
        for found in answer
    ]


def lines(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return ["There is none."]
    columns = ("name", "uuid", "parent", "host", "generation")
    return table([name.upper() for name in columns], [[p[key] for key in columns] for p in found])
