"""Refusals as pages; whoever has to say first who he is, is led to where that is done."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from dovetail.rest.console.entrance import PREFIX
from dovetail.rest.console.markup import element, text
from dovetail.rest.console.shell import HTML, plain_page
from dovetail.rest.server.errors import HttpError, RefusedRequest, problem_details
from dovetail.rest.server.http import Reply


def refusal(error: HttpError, request: RefusedRequest) -> Reply:
    """The shape of errors of the console's door."""
    if error.status == 401 and request.method in ("GET", "HEAD"):
        where = f"{PREFIX}/login?next={quote(request.target, safe='')}"
        return Reply(303, headers={"location": where}, content_type=None)
    if "text/html" not in request.headers.get("accept", "text/html"):
        return problem_details(error, request)
    title = HTTPStatus(error.status).phrase
    page = plain_page(
        title,
        element("h1", title),
        element("p", error.message or "There is no such page."),
        element("p", text("Request "), element("code", request.request_id)),
    )
    return Reply(error.status, page, error.headers, content_type=HTML)
