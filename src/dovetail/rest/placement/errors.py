"""Errors as the Placement API tells them: their shape, their codes, and the table of the domain's.

Clients read `errors[0].detail`, whose shape (a general sentence, a blank line, the message) goes
back to the framework Placement is written in; from 1.23 on, programs read `code`.
"""

from __future__ import annotations

import html
import re
from http import HTTPStatus
from typing import Any

import orjson

from dovetail.core.errors import (
    InventoryInUse,
    ProviderExists,
    ProviderInUse,
    ProviderIsParent,
    StaleGeneration,
)
from dovetail.rest.server.errors import (
    DOMAIN_ERRORS,
    ErrorAnswer,
    ErrorTable,
    HttpError,
    RefusedRequest,
)
from dovetail.rest.server.http import JSON, Reply

UNDEFINED = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
PROVIDER_IS_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"

ERRORS: ErrorTable = {
    **DOMAIN_ERRORS,
    StaleGeneration: ErrorAnswer(409, CONCURRENT_UPDATE),
    ProviderExists: ErrorAnswer(409, DUPLICATE_NAME),
    ProviderInUse: ErrorAnswer(409, PROVIDER_IN_USE),
    ProviderIsParent: ErrorAnswer(409, PROVIDER_IS_PARENT),
    InventoryInUse: ErrorAnswer(409, INVENTORY_IN_USE),
}

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


async def problem(error: HttpError, request: RefusedRequest) -> Reply:
    title = HTTPStatus(error.status).phrase
    accept = request.headers.get("accept", "")
    # The type that was not to be had: of what was sent, or of what should be answered.
    wanted = request.headers.get("content-type") if error.status == 415 else accept
    text = detail(error, request.method, wanted or "None")
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
    if request.version is not None and request.version >= 23:
        document["code"] = error.code or UNDEFINED
    document["request_id"] = request.request_id
    document.update(error.extra)
    return Reply(error.status, orjson.dumps({"errors": [document]}), error.headers)


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


def error_type(accept: str) -> str:
    if not accept or any(kind in accept for kind in ("*/*", "application/*", JSON)):
        return JSON
    return "text/html" if "text/html" in accept else "text/plain"
