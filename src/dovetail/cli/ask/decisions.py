"""`dovetail decisions`: shows the record of claims: what was asked, chosen and passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import click

from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.output import amounts, output_option, paint, printable, show

FEW = 3


@click.command()
@click.option("--consumer", metavar="UUID", help="Only those about this consumer.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most.")
@click.option("--before", type=int, metavar="ID", help="Only those older than this one.")
@click.option("-v", "--verbose", is_flag=True, help="All that was passed over.")
@output_option
@talks_to_server()
def decisions(
    *,
    server: ServerClient,
    consumer: str | None,
    limit: int,
    before: int | None,
    verbose: bool,
    form: str,
) -> None:
    """Show what was chosen, and why.

    The newest claims first: what was asked for, the place that was taken with its scores, and those
    that were passed over.
    """
    asked = {"limit": limit, "consumer": consumer, "before": before}
    given = {name: value for name, value in asked.items() if value is not None}
    answer = server.get(f"/dovetail/v1/decisions?{urlencode(given)}")
    show(form, answer, lambda: lines(answer["decisions"], verbose=verbose))


def lines(found: list[dict[str, Any]], *, verbose: bool) -> Iterator[str]:
    if not found:
        yield "No decision is on record."
    for at, decision in enumerate(found):
        if at:
            yield ""
        yield from one(decision, None if verbose else FEW)


def one(decision: dict[str, Any], most: int | None) -> Iterator[str]:
    outcome = decision["outcome"]
    colour = "green" if outcome == "claimed" else "yellow"
    yield (
        f"{paint(str(decision['id']), bold=True)}  {decision['at']}  {paint(outcome, colour)}"
        f"  consumer {decision['consumer']}"
    )
    yield f"  asked   {printable(decision['query'])}"
    if decision.get("words"):
        yield f"  because {printable(decision['words'])}"
    if decision.get("chosen"):
        yield f"  took    {choice(decision['chosen'])}"
    others = decision.get("passed_over", [])
    for other in others[:most]:
        yield f"  over    {choice(other)}"
    if len(others) > len(others[:most]):
        yield f"  over    {len(others) - len(others[:most])} more (-v shows them)"


def choice(found: dict[str, Any]) -> str:
    places = "; ".join(
        f"{printable(given['name'] or uuid)} {amounts(given['resources'])}"
        for uuid, given in found["allocations"].items()
    )
    scores = amounts(found.get("scores") or {})
    return f"#{found['position']} {places}" + (f"  ({scores})" if scores else "")
