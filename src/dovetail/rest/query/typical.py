"""Reader of the file of typical requests, for `cli.run.worker`.

A JSON object a line: `{"query": "...", "count": 12}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from dovetail.core.errors import Malformed
from dovetail.core.request import Request
from dovetail.engine.rank import Typical
from dovetail.rest.query.parse import names_class, newest_request, query_of
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.settings import RequestLimits

LIMITS = RequestLimits()
"""What a request may ask for by default: the file is the operator's own."""


class TypicalLine(msgspec.Struct, forbid_unknown_fields=True):
    query: str
    count: Annotated[int, Meta(ge=1)] = 1


def read_typical(path: Path) -> Typical:
    return Typical.of(counted_requests(path))


def counted_requests(path: Path) -> Iterator[tuple[Request, int]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise Malformed(f"typical requests: {error}") from error
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text, type=TypicalLine)
            request = request_in(line.query)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Malformed(f"{path}, line {number}: {error}") from error
        except HttpError as error:
            raise Malformed(f"{path}, line {number}: {error.message}") from error
        yield request, line.count


def request_in(text: str) -> Request:
    query = query_of(text, LIMITS)
    if names_class(query):
        # The file is read before there is a ledger, which knows the classes.
        raise bad_request("`class` is not known here: say what it selects, as `attributes`")
    return newest_request(query, {}, LIMITS)
