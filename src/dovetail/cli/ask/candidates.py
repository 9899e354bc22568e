"""`dovetail candidates`: lists the places where a request fits, as GET /allocation_candidates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from dovetail.cli.support import exits, query
from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.names import Names, look_up
from dovetail.cli.support.output import amounts, output_option, show, table

Place = dict[str, Any]
HEADERS = ("#", "HOST", "PROVIDER", "RESOURCES", "GROUPS", "SCORES")
SHARING = "MISC_SHARES_VIA_AGGREGATE"


@click.command()
@query.query_options
@output_option
@talks_to_server()
def candidates(server: ServerClient, form: str, **asked: Any) -> None:
    """Show where a request fits.

    QUERY is what GET /allocation_candidates takes, as 'resources=VCPU:8&limit=5'; the options say
    the same in other words and are added to it. Exits with 1 if nothing fits.
    """
    text = query.prepare(server, **asked).text
    answer = server.get(f"/allocation_candidates?{text}")
    places = places_of(server, answer)
    show(form, {"candidates": places}, lambda: lines(places))
    if not places:
        click.echo(f"Nothing fits. To see why: dovetail explain '{text}'", err=True)
        sys.exit(exits.NO)


def places_of(
    server: ServerClient, answer: dict[str, Any], told: Names | None = None
) -> list[Place]:
    """Candidates with the names of host and providers: those told, the others asked for."""
    requests, told = answer["allocation_requests"], told or {}
    uuids = (uuid for request in requests for uuid in request["allocations"])
    known = {**look_up(server, (uuid for uuid in uuids if uuid not in told)), **told}
    shared = {
        uuid
        for uuid, summary in answer["provider_summaries"].items()
        if SHARING in summary["traits"]
    }
    return [place_of(request, known, shared) for request in requests]


def place_of(request: dict[str, Any], known: Names, shared: set[str]) -> Place:
    # Storage that hosts share is nobody's host; a candidate of nothing else has to name it.
    own = [uuid for uuid in request["allocations"] if uuid not in shared]
    first = next(iter(own or request["allocations"]))
    found: Place = {
        "host": known.get(first, {}).get("host", first),
        "allocations": {
            uuid: {"name": known.get(uuid, {}).get("name", uuid), **given}
            for uuid, given in request["allocations"].items()
        },
        "mappings": request["mappings"],
    }
    if "scores" in request:
        found["scores"] = request["scores"]
    return found


def lines(places: list[Place]) -> list[str]:
    if not places:
        return []
    filled = [row for at, place in enumerate(places, 1) for row in rows(at, place)]
    # Without groups or scores there is nothing to show in their columns.
    kept = [at for at in range(len(HEADERS)) if any(row[at] for row in filled)]
    return table([HEADERS[at] for at in kept], [[row[at] for at in kept] for row in filled])


def rows(at: int, place: Place) -> Iterator[list[str]]:
    """One for each provider; what is said of the whole candidate stands in the first."""
    for line, (uuid, given) in enumerate(place["allocations"].items()):
        groups = (name for name, uuids in place["mappings"].items() if uuid in uuids and name)
        whole = [str(at), place["host"], amounts(place.get("scores", {}))]
        number, host, scores = whole if line == 0 else ["", "", ""]
        yield [number, host, given["name"], amounts(given["resources"]), " ".join(groups), scores]
