"""`dovetail explain`: shows why a request fits or does not, and what would help."""

from __future__ import annotations

import sys
from typing import Any

import click

from dovetail.cli.ask.explain_pod import pod
from dovetail.cli.support import exits, explanation, query
from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.named_ways import NamedWays
from dovetail.cli.support.output import output_option, show


@click.group(cls=NamedWays, no_args_is_help=False)
@query.query_options
@click.option("--host", metavar="HOST", help="Judge this host, by name or UUID.")
@click.option("--moves", is_flag=True, help="Say which consumers to move, and where to.")
@output_option
@talks_to_server()
def explain(
    server: ServerClient, host: str | None, form: str, *, moves: bool, **asked: Any
) -> None:
    """Say why a request fits or does not.

    QUERY as for `dovetail candidates`. Shows how many hosts each condition leaves, what the nearest
    hosts lack, the smallest changes that would help and, with --moves, whom to move. Exits with 1
    if nothing fits. Of a pod in a Kubernetes cluster, `explain pod` says what it got.
    """
    question = query.prepare(server, **asked)
    of_host = "" if host is None else f"&host={segment(host)}"
    with_moves = "&moves=1" if moves else ""
    answer = server.get(f"/dovetail/v1/explain?{question.text}{of_host}{with_moves}")
    one_host = host is not None
    show(form, answer, lambda: explanation.lines(answer, question.names, one_host=one_host))
    if not fits(answer, one_host=one_host):
        sys.exit(exits.NO)


explain.add_command(pod)


def fits(answer: dict[str, Any], *, one_host: bool) -> bool:
    if one_host:
        return any(host["fits"] for host in answer["nearest"])
    return bool(answer["verdict"] == "fits")
