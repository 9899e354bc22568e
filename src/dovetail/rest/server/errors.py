"""Errors as HTTP tells them.

Placement's clients read `errors[0].detail`, whose shape (a general sentence, a blank line, the
message) goes back to the framework Placement is written in. Dovetail's own endpoints answer with
RFC 9457 problem details instead.
"""

from __future__ import annotations

import html
import re
from http import HTTPStatus
from typing import Any

import orjson

from dovetail.rest.server.http import JSON, Reply, Version

UNDEFINED = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
PROVIDER_IS_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
DUPLICATE_KEY = "placement.query.duplicate_key"
BAD_VALUE = "placement.query.bad_value"
MISSING_VALUE = "placement.query.missing_value"

SENTENCES = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    401: "This server could not verify that you are authorized to access the document you "
    "requested.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    414: "The request URI was too long for this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
TAGS = re.compile(r"<[^>]*>")


class HttpError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        code: str = UNDEFINED,
        headers: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.headers = headers or {}
        self.extra = extra or {}


def bad_request(message: str, code: str = UNDEFINED) -> HttpError:
    return HttpError(400, message, code=code)


def not_found(message: str = "") -> HttpError:
    return HttpError(404, message)


def conflict(message: str, code: str = UNDEFINED) -> HttpError:
    return HttpError(409, message, code=code)


def detail(error: HttpError, method: str, media: str) -> str:
    """The text clients show, with the white space they are used to."""
    message = without_tags(error.message.replace("\n", " ").replace("\r", ""))
    match error.status:
        case 405:
            lead = f"The method {method} is not allowed for this resource."
        case 406:
            lead = (
                "The resource could not be generated that was acceptable to your browser "
                f"(content of type {media}."
            )
        case 415:
            lead = f"The request media type {media} is not supported by this server."
        case status:
            lead = SENTENCES.get(status, HTTPStatus(status).description)
            return f"{lead}\n\n {message}  "
    return f"{lead} \n\n {message}"


def without_tags(text: str) -> str:
    # Beyond the last ">" there is no tag, and looking for its end from every "<" would take seconds
    # for what a stranger can put into a header.
    head, end, rest = text.rpartition(">")
    return TAGS.sub("", head + end) + rest


def reply(
    error: HttpError,
    *,
    method: str,
    media: str,
    accept: str,
    version: Version | None,
    request_id: str,
) -> Reply:
    """The error in the shape of the Placement API. `media` is the type that was not to be had."""
    title = HTTPStatus(error.status).phrase
    text = detail(error, method, media)
    kind = error_type(accept)
    if kind == "text/html":
        body = (
            f"<html>\n <head>\n  <title>{error.status} {title}</title>\n </head>\n <body>\n"
            f"  <h1>{error.status} {title}</h1>\n  {html.escape(text)}\n </body>\n</html>"
        ).encode()
        return Reply(error.status, body, error.headers, "text/html; charset=UTF-8")
    if kind == "text/plain":
        body = f"{error.status} {title}\n\n{text}".encode()
        return Reply(error.status, body, error.headers, "text/plain; charset=UTF-8")
    document: dict[str, Any] = {"status": error.status, "title": title, "detail": text}
    if version is not None and version >= 23:
        document["code"] = error.code
    document["request_id"] = request_id
    document.update(error.extra)
    return Reply(error.status, orjson.dumps({"errors": [document]}), error.headers)


def problem(error: HttpError, request_id: str) -> Reply:
    """The error as problem details."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
        "request_id": request_id,
        **error.extra,
    }
    return Reply(
        error.status, orjson.dumps(document), error.headers, content_type="application/problem+json"
    )


def error_type(accept: str) -> str:
    if not accept or any(kind in accept for kind in ("*/*", "application/*", JSON)):
        return JSON
    return "text/html" if "text/html" in accept else "text/plain"
