"""`dovetail claim`: has the server find the best place for a request and take it in one step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from getpass import getuser
from typing import Any

import click

from dovetail.cli.support import exits, explanation, query
from dovetail.cli.support.client import ServerClient, ServerRefusal, talks_to_server
from dovetail.cli.support.output import amounts, output_option, paint, show, table


@click.command()
@query.query_options
@click.option("--consumer", metavar="UUID", help="Who takes it; by default a new consumer.")
@click.option(
    "--project",
    metavar="ID",
    envvar="DOVETAIL_PROJECT",
    default="default",
    show_default=True,
    show_envvar=True,
    help="The project of the consumer.",
)
@click.option(
    "--user",
    metavar="ID",
    envvar="DOVETAIL_USER",
    default=getuser,
    show_default="who is logged in",
    show_envvar=True,
    help="The user of the consumer.",
)
@click.option("--type", "consumer_type", metavar="TYPE", help="What it is, as INSTANCE.")
@output_option
@talks_to_server()
def claim(
    *,
    server: ServerClient,
    consumer: str | None,
    project: str,
    user: str,
    consumer_type: str | None,
    form: str,
    **asked: Any,
) -> None:
    """Find the best place and take it.

    QUERY as for `dovetail candidates`. Exits with 1, and says why, if nothing fits.
    """
    question = query.prepare(server, **asked)
    wish = {
        "query": question.text,
        "consumer": consumer,
        "project_id": project,
        "user_id": user,
        "consumer_type": consumer_type,
    }
    given = {name: value for name, value in wish.items() if value is not None}
    try:
        answer = server.call("POST", "/dovetail/v1/claims", given)
    except ServerRefusal as error:
        reason = error.document.get("explanation")
        if reason is None:
            raise
        show(form, error.document, lambda: explanation.lines(reason, question.names))
        sys.exit(exits.NO)
    show(form, answer, lambda: lines(answer))


def lines(answer: dict[str, Any]) -> Iterator[str]:
    yield f"{paint('Claimed', 'green')} for consumer {answer['consumer']}:"
    yield ""
    rows = [
        (given["name"] or uuid, amounts(given["resources"]))
        for uuid, given in answer["allocations"].items()
    ]
    yield from table(["PROVIDER", "RESOURCES"], rows)
    yield ""
    yield f"To give it back: dovetail release {answer['consumer']}"
