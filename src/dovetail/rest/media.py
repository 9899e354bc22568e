"""Media types: what a client sends, and what it can read."""

from __future__ import annotations

from starlette.datastructures import Headers

from dovetail.rest.errors import HttpError
from dovetail.rest.http import JSON


def accepts_json(accept: str) -> bool:
    offered = [part.partition(";")[0].strip() for part in accept.split(",")]
    return not accept or any(kind in {JSON, "application/*", "*/*"} for kind in offered)


def require_json(headers: Headers) -> None:
    media = headers.get("content-type", "").partition(";")[0].strip()
    if media != JSON:
        raise HttpError(415, f"The media type {media or None} is not supported, use {JSON}")
