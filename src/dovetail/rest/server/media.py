"""Media types: what a client sends, and what it can read."""

from __future__ import annotations

from starlette.datastructures import Headers

from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import JSON


def accepts_json(accept: str) -> bool:
    """Whether the most specific range that includes JSON does not rule it out."""
    if not accept:
        return True
    qualities: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        qualities[kind] = quality(parameters)
    for kind in (JSON, "application/*", "*/*"):
        if kind in qualities:
            return qualities[kind] > 0
    return False


def quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 1
    return 1


def require_json(headers: Headers) -> None:
    media = headers.get("content-type", "").partition(";")[0].strip()
    if media != JSON:
        raise HttpError(415, f"The media type {media or None} is not supported, use {JSON}")
