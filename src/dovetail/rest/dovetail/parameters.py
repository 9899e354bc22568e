"""The query strings of Dovetail's own endpoints: what they do not know is refused."""

from __future__ import annotations

from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Query


def only(query: Query, *known: str) -> None:
    for name, _ in query.pairs:
        if name not in known:
            raise bad_request(f"no parameter {name!r}: there is {', '.join(known) or 'none'}")
