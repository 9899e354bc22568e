"""Requests of the server to itself: pages are made from what the API answers their reader."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Message


def inner_request(outer: Request, target: str, newest: Mapping[str, str]) -> Request:
    """GET of an address (path and query) by whoever sent the request.

    `newest` is what asks for the newest version, by header.
    """
    path, _, query = target.partition("?")
    headers = [pair for pair in outer.scope["headers"] if pair[0] == b"host"]
    headers += [(name.encode(), text.encode()) for name, text in newest.items()]
    scope = {
        **outer.scope,
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
    }
    return Request(scope, nothing)


async def nothing() -> Message:
    """The body of a GET."""
    return {"type": "http.request", "body": b"", "more_body": False}


def target_of(request: Request) -> str:
    """Path and query, as asked for."""
    scope = request.scope
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    whole = path.partition(b"?")[0] + (b"?" + query if query else b"")
    return whole.decode("latin-1")
