"""The way in for people: a token once, or the issuer of tokens where there is one to go to."""

from __future__ import annotations

from urllib.parse import urlencode

from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.console.markup import Markup, element, link
from dovetail.rest.console.shell import HTML, plain_page
from dovetail.rest.server.http import Call, Reply

TITLE = "Sign in"


async def show(call: Call) -> Reply:
    """GET /console/login."""
    return Reply(200, page(call, None, call.query.get("next") or PREFIX), content_type=HTML)


async def refused(call: Call, reason: str, there: str) -> Reply:
    return Reply(401, page(call, reason, there), content_type=HTML)


def page(call: Call, problem: str | None, there: str) -> bytes:
    told = None
    if problem is not None:
        told = element("p", problem, class_="problem", role="alert")
    issuer = with_issuer(there) if call.backend.oidc.client_id is not None else None
    return plain_page(TITLE, element("h1", TITLE), told, issuer, with_token(there))


def with_issuer(there: str) -> Markup:
    start = f"{PREFIX}/oidc/start?{urlencode({'next': there})}"
    return element("p", link(start, "Sign in with your organisation's account"))


def with_token(there: str) -> Markup:
    return element(
        "form",
        element("input", type="hidden", name="next", value=there),
        element("label", "Token", for_="token"),
        element(
            "input",
            id="token",
            name="token",
            type="password",
            autocomplete="current-password",
            required=True,
        ),
        element("button", TITLE, type="submit"),
        method="post",
        action=f"{PREFIX}/session",
        class_="asked",
    )
