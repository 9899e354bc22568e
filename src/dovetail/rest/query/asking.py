"""Questions to Dovetail's own endpoints: allocation candidates queries in their newest dialect."""

from __future__ import annotations

from dovetail.core.request import Request
from dovetail.rest.placement import schemas
from dovetail.rest.placement.versions import NEWEST
from dovetail.rest.query.parse import Classes, request_of
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Asked, Query


def request_in(query: Query, classes: Classes) -> Request:
    schemas.LIST_CANDIDATES.at(NEWEST).query(query)
    return request_of(Asked(query, NEWEST), classes)


def query_of(text: str) -> Query:
    """A query that stands in a document."""
    try:
        return Query(text.removeprefix("?").encode("ascii"))
    except (UnicodeError, ValueError) as error:
        raise bad_request(f"`query` is no query string: {error}") from error


def without(query: Query, *keys: str) -> Query:
    """The query without parameters that are not the engine's."""
    left = Query(b"")
    left.pairs = [pair for pair in query.pairs if pair[0] not in keys]
    left.last = dict(left.pairs)
    return left
