"""`dovetail usage`: shows how full the fleet is, and how much consumers and projects use."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import click

from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.names import look_up
from dovetail.cli.support.output import Cell, output_option, show, table


@click.command()
@click.argument("host", required=False)
@click.option("--consumer", metavar="UUID", help="What this consumer holds, and where.")
@click.option("--project", metavar="ID", help="What this project uses.")
@click.option("--user", metavar="ID", help="With --project: what this user of it uses.")
@output_option
@talks_to_server()
def usage(
    *,
    server: ServerClient,
    host: str | None,
    consumer: str | None,
    project: str | None,
    user: str | None,
    form: str,
) -> None:
    """Show how full the fleet is.

    For every resource class: capacity, what is used and free, and the largest amount that a single
    provider could give now. With HOST, a name or a UUID, of that host only.
    """
    if sum(given is not None for given in (host, consumer, project)) > 1:
        raise click.UsageError("HOST, --consumer and --project are different questions: ask one")
    if user is not None and project is None:
        raise click.UsageError("--user needs --project")
    if consumer is not None:
        of_consumer(server, consumer, form)
    elif project is not None:
        of_project(server, project, user, form)
    else:
        of_fleet(server, host, form)


def of_fleet(server: ServerClient, host: str | None, form: str) -> None:
    query = "" if host is None else f"?tree={segment(host)}"
    answer = server.get(f"/dovetail/v1/usage{query}")
    show(form, answer, lambda: fleet_lines(answer["classes"]))


def fleet_lines(classes: dict[str, dict[str, int]]) -> list[str]:
    headers = ["CLASS", "PROVIDERS", "CAPACITY", "USED", "FREE", "USED %", "LARGEST FIT"]
    return table(headers, [fleet_row(name, total) for name, total in classes.items()])


def fleet_row(name: str, total: dict[str, int]) -> list[Cell]:
    capacity, used = total["capacity"], total["used"]
    percent = used * 100 // capacity if capacity else None
    return [name, total["providers"], capacity, used, total["free"], percent, total["largest"]]


def of_consumer(server: ServerClient, consumer: str, form: str) -> None:
    answer = server.get(f"/allocations/{segment(consumer)}")
    known = look_up(server, answer["allocations"])
    for uuid, given in answer["allocations"].items():
        given["name"] = known.get(uuid, {}).get("name", uuid)
    show(form, answer, lambda: consumer_lines(consumer, answer))


def consumer_lines(consumer: str, answer: dict[str, Any]) -> list[str]:
    if not answer["allocations"]:
        return [f"{consumer} holds nothing."]
    rows = [
        (given["name"], name, amount)
        for given in answer["allocations"].values()
        for name, amount in given["resources"].items()
    ]
    return table(["PROVIDER", "CLASS", "USED"], rows)


def of_project(server: ServerClient, project: str, user: str | None, form: str) -> None:
    asked = {"project_id": project, **({} if user is None else {"user_id": user})}
    answer = server.get(f"/usages?{urlencode(asked)}")
    show(form, answer, lambda: project_lines(answer["usages"]))


def project_lines(usages: dict[str, dict[str, int]]) -> list[str]:
    rows = [
        (kind, amounts["consumer_count"], name, amount)
        for kind, amounts in usages.items()
        for name, amount in amounts.items()
        if name != "consumer_count"
    ]
    return table(["TYPE", "CONSUMERS", "CLASS", "USED"], rows) if rows else ["It uses nothing."]
