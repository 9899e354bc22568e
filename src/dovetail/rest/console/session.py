"""The session: a caller's token, sealed into a cookie that counts below /console and nowhere else.

A token that says much, as those of issuers do of people in many groups, is sealed as one text and
cut into several cookies. Every request has them opened and the token checked as if it had been
sent, so a token that is revoked or expires ends its sessions.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request

from dovetail.rest.auth.sealing import SEAL_BYTES
from dovetail.rest.console.entrance import PREFIX, SESSION, SESSION_PARTS, SESSION_SECONDS
from dovetail.rest.console.pages import login
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Call, Reply

LOCAL = re.compile(rf"{PREFIX}([/?][!-\[\]-~]*)?")
"""Addresses of the console, without backslashes, which browsers take for slashes."""
LONGEST_COOKIE = 4000
"""What browsers keep of one, with its name and attributes, is 4096 bytes."""
LONGEST_SESSION = len(SESSION_PARTS) * LONGEST_COOKIE
"""A token takes three quarters of that: the rest is how it is written."""


async def begin(call: Call) -> Reply:
    """POST /console/session: a token once, from the login form."""
    form = form_of(call)
    token, there = form.get("token", "").strip(), local_address(form.get("next"))
    try:
        cookies = await session_cookies(call, token)
    except HttpError as error:
        if error.status not in (400, 401):
            raise
        return await login.refused(call, error.message or "This token is not known here.", there)
    return Reply(303, headers={"location": there}, content_type=None, cookies=cookies)


async def end(call: Call) -> Reply:
    """POST /console/session/end."""
    where = {"location": f"{PREFIX}/login"}
    return Reply(303, headers=where, content_type=None, cookies=parts_of(call.request, ""))


async def session_cookies(call: Call, token: str) -> tuple[str, ...]:
    """A session of whoever has the token. Raises HttpError as the way in does."""
    if not token or not token.isascii() or not token.isprintable():
        raise bad_request("A token is needed.")
    await call.admit(Headers({"x-auth-token": token}))
    sealed = await call.backend.seal.close_up(SESSION, token)
    if len(sealed) > LONGEST_SESSION:
        raise bad_request(
            f"This token has {len(token)} characters, and a session holds one of up to "
            f"{LONGEST_SESSION * 3 // 4 - SEAL_BYTES}: have it issued with less in it."
        )
    return parts_of(call.request, sealed)


def parts_of(request: Request, sealed: str) -> tuple[str, ...]:
    """All cookies of a session; those that it does not take are cleared, for they may be of a
    longer one before."""
    cut = (sealed[at : at + LONGEST_COOKIE] for at in range(0, LONGEST_SESSION, LONGEST_COOKIE))
    return tuple(
        cookie(
            request,
            name,
            part,
            path=PREFIX,
            seconds=SESSION_SECONDS if part else 0,
            same_site="Strict",
        )
        for name, part in zip(SESSION_PARTS, cut, strict=True)
    )


def cookie(
    request: Request, name: str, value: str, *, path: str, seconds: int, same_site: str
) -> str:
    parts = [f"{name}={value}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly"]
    parts.append(f"SameSite={same_site}")
    if request.url.scheme == "https":
        parts.append("Secure")
    return "; ".join(parts)


def form_of(call: Call) -> dict[str, str]:
    try:
        return dict(parse_qsl(call.body.decode("utf-8"), keep_blank_values=True))
    except ValueError as error:
        raise bad_request(f"the form cannot be read: {error}") from error


def local_address(asked: str | None) -> str:
    """Where to go on: a page of the console, whatever was asked for."""
    return asked if asked is not None and LOCAL.fullmatch(asked) else PREFIX
