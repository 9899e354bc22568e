"""`dovetail explain`: why does it fit, or not, and what would help?"""

from __future__ import annotations

import sys
from typing import Any

import click

from dovetail.cli import exits, explanation, query
from dovetail.cli.client import Server, segment, talks_to_server
from dovetail.cli.output import output_option, show


@click.command()
@query.query_options
@click.option("--host", metavar="HOST", help="Judge this host, by name or UUID.")
@output_option
@talks_to_server()
def explain(server: Server, host: str | None, form: str, **asked: Any) -> None:
    """Say why a request fits or does not.

    QUERY as for `dovetail candidates`. Shows how many hosts each condition leaves, what the nearest
    hosts lack, and the smallest changes that would help. Exits with 1 if nothing fits.
    """
    text = query.encoded(server, query.built(**asked))
    if host is not None:
        text += f"&host={segment(host)}"
    answer = server.get(f"/dovetail/v1/explain?{text}")
    show(form, answer, lambda: explanation.lines(answer, one_host=host is not None))
    if not fits(answer, host):
        sys.exit(exits.NO)


def fits(answer: dict[str, Any], host: str | None) -> bool:
    if host is None:
        return bool(answer["verdict"] == "fits")
    return all(near["fits"] for near in answer["nearest"])
