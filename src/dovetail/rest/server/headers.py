"""Header rules that all doors share: media types, pages of other origins, protection of answers,
idempotency keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from dovetail.ledger.database.idempotency import IdempotencyKey
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import JSON

if TYPE_CHECKING:
    from dovetail.rest.server.http import Call

KEY = "idempotency-key"
LONGEST_KEY = 200

REQUEST_ID = "x-openstack-request-id"
MAY_BE_SENT = ("x-auth-token", "authorization", "content-type", REQUEST_ID)
"""By pages of another origin, beside the version headers of the doors."""
ALWAYS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
"""Keeps answers from being misread by browsers."""


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


def accepts_gzip(headers: Headers) -> bool:
    """Whether the caller can read it and does not rule it out."""
    qualities: dict[str, float] = {}
    for part in headers.get("accept-encoding", "").split(","):
        coding, *parameters = (word.strip().lower() for word in part.split(";"))
        qualities[coding] = quality(parameters)
    return qualities.get("gzip", qualities.get("*", 0)) > 0


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


def has_seen(headers: Headers, tag: str) -> bool:
    """Whether the caller has the state with this tag; on the way tags may have been weakened."""
    known = headers.get("if-none-match", "").split(",")
    return tag in {each.strip().removeprefix("W/") for each in known}


def vary_by(headers: MutableMapping[str, str], name: str) -> None:
    """Tell caches that the answer depends on a header, beside those named already."""
    headers["vary"] = f"{headers['vary']}, {name}" if "vary" in headers else name


def cors_headers(allowed: str, asked: Headers, versions: Sequence[str]) -> dict[str, str]:
    """What to answer to a request with these headers, if pages of origin `allowed` may ask.

    `versions` are the headers in which doors tell versions.
    """
    if asked.get("origin") != allowed:
        return {}
    return {
        "access-control-allow-origin": allowed,
        "access-control-allow-headers": ", ".join(sendable(asked, (*versions, *MAY_BE_SENT))),
        "access-control-allow-methods": "GET, POST, PUT, DELETE",
        "access-control-expose-headers": ", ".join((*versions, REQUEST_ID)),
    }


def sendable(asked: Headers, allowed: Sequence[str]) -> list[str]:
    """Those of the headers that the page wants to send which it may; all, if it names none."""
    named = asked.get("access-control-request-headers", "")
    wanted = {name.strip().lower() for name in named.split(",")} if named else set(allowed)
    return [name for name in allowed if name in wanted]


def protect(headers: MutableMapping[str, str], usual: Mapping[str, str]) -> None:
    """Add what is missing; `usual` is what the door says."""
    for name, value in (*usual.items(), *ALWAYS.items()):
        headers.setdefault(name, value)


def key_of(call: Call, *content: bytes) -> IdempotencyKey | None:
    """The idempotency key of a request with this content; None if it has none."""
    key = call.request.headers.get(KEY)
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise bad_request(f"{KEY}: 1 to {LONGEST_KEY} printable characters")
    identity = call.identity
    digest = hashlib.sha256()
    for each in (call.request.method.encode(), call.request.scope["path"].encode(), *content):
        digest.update(len(each).to_bytes(8, "big") + each)
    caller = hashlib.sha256(f"{identity.user}\0{identity.project}".encode()).hexdigest()
    return IdempotencyKey(key, caller, digest.hexdigest())
