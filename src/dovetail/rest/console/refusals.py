"""Refusals as pages; whoever has to say first who he is, is led to where that is done.

Known callers get the frame of every page: a refusal is no dead end.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, unquote

from dovetail.ledger import LedgerBusy
from dovetail.rest.auth.identity import NOBODY
from dovetail.rest.console import me
from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.console.markup import element, sentence, text
from dovetail.rest.console.pages.page import page_caller
from dovetail.rest.console.shell import HTML, framed, plain_page
from dovetail.rest.server.errors import HttpError, RefusedRequest, problem_details
from dovetail.rest.server.http import Reply

NOWHERE = "/-"
"""A path that the navigation does not have."""


async def refusal(error: HttpError, request: RefusedRequest) -> Reply:
    """The shape of errors of the console's door."""
    if error.status == 401 and request.method in ("GET", "HEAD"):
        where = f"{PREFIX}/login?next={quote(request.target, safe='')}"
        return Reply(303, headers={"location": where}, content_type=None)
    if "text/html" not in request.headers.get("accept", "text/html"):
        return await problem_details(error, request)
    title = HTTPStatus(error.status).phrase
    content = (
        element("h1", title),
        element("p", sentence(error.message or "There is no such page.", names_in(request.target))),
        element("p", text("Request "), element("code", request.request_id)),
    )
    if request.identity is NOBODY:
        body = plain_page(title, *content)
    else:
        caller = page_caller(request.identity, request.backend, await known_uses(error, request))
        body = framed(title, NOWHERE, caller, *content)
    return Reply(error.status, body, error.headers, content_type=HTML)


def names_in(target: str) -> list[str]:
    """What an address asks for, which a refusal of it may repeat."""
    path, _, query = target.partition("?")
    return [*map(unquote, path.split("/")), *(value for _, value in parse_qsl(query))]


async def known_uses(error: HttpError, request: RefusedRequest) -> Mapping[str, bool]:
    """Nothing, where the ledger may be what is amiss: then nobody shall wait for it again."""
    if error.status >= 500:
        return {}
    try:
        return await me.uses(request.backend)
    except LedgerBusy:
        return {}
