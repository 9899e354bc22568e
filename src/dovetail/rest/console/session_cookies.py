"""Cookies of a session: the caller's token, sealed, and what renews it where the issuer gave that.

A token that says much, as those of issuers do of people in many groups, is sealed as one text and
cut into several cookies. The entrance opens them at every request; a token that is about to expire
is renewed there, and the answer has the new cookies.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import Headers

from dovetail.rest.auth.admission import recognise
from dovetail.rest.auth.oidc import unverified
from dovetail.rest.auth.sealing import SEAL_BYTES
from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.server.errors import HttpError, bad_request

if TYPE_CHECKING:
    from starlette.requests import Request

    from dovetail.rest.auth.identity import Authenticator
    from dovetail.rest.server.backend import ServerBackend

SESSION = "dovetail_session"
"""The cookie, and what it is sealed for."""
SESSION_PARTS = (SESSION, *(f"{SESSION}.{number}" for number in (1, 2, 3)))
"""Cookies that what is sealed is cut into, in their order: browsers keep 4096 bytes of one."""
SESSION_SECONDS = 12 * 3600
LONGEST_COOKIE = 4000
"""What browsers keep of one, with its name and attributes, is 4096 bytes."""
LONGEST_SESSION = len(SESSION_PARTS) * LONGEST_COOKIE
"""A token takes three quarters of that: the rest is how it is written."""
LONGEST_CONTENT = LONGEST_SESSION * 3 // 4 - SEAL_BYTES
EARLY_SECONDS = 60
"""A token is renewed so long before it expires, or in the last quarter of a short life."""


class Session(msgspec.Struct, frozen=True):
    token: str
    refresh: str | None = None
    """What the issuer renews the token for."""
    began: int = 0
    """Of one that can be renewed: when somebody signed in (Unix seconds)."""

    def content(self) -> str:
        """What is sealed: the token, and in further lines what renews it, if there is room."""
        whole = f"{self.token}\n{self.refresh}\n{self.began}"
        return whole if self.refresh and len(whole) <= LONGEST_CONTENT else self.token

    @classmethod
    def of(cls, content: str) -> Session:
        token, *more = content.split("\n")
        return cls(token, more[0], int(more[1])) if more else cls(token)


class OpenedSession(msgspec.Struct, frozen=True):
    token: str
    cookies: tuple[str, ...] = ()
    """To be set, if it was renewed or is over."""


async def opened_session(request: Request, backend: ServerBackend) -> OpenedSession | None:
    """The session that cookies hold, if there is one and it is not too old. They are sealed as one
    text: parts of several sessions, or some parts only, hold nothing."""
    sealed = "".join(request.cookies.get(name, "") for name in SESSION_PARTS)
    if not sealed:
        return None
    content = await backend.seal.open_up(SESSION, sealed, SESSION_SECONDS)
    if content is None:
        return None
    kept = Session.of(content)
    if kept.refresh is None or not is_due(kept.token, time.time()):
        return OpenedSession(kept.token)
    return await renewed_session(request, backend, kept)


async def renewed_session(request: Request, backend: ServerBackend, kept: Session) -> OpenedSession:
    """Whoever cannot be renewed goes on with the token that is there, which is good or is not."""
    assert kept.refresh is not None
    left = kept.began + SESSION_SECONDS - int(time.time())
    if left <= 0:
        return OpenedSession(kept.token, parts_of(request, ""))
    try:
        answer = await backend.issuer.renewed(kept.refresh)
        if answer is None:
            return OpenedSession(kept.token)
        token = await accepted_token(backend.authenticator, answer)
    except HttpError:
        return OpenedSession(kept.token)
    session = Session(token, refresh_in(answer) or kept.refresh, kept.began)
    sealed = await backend.seal.close_up(SESSION, session.content())
    return OpenedSession(token, parts_of(request, sealed, left))


async def accepted_token(authenticator: Authenticator, answer: dict[str, Any]) -> str:
    """The access token if it is meant for us, else the one that says who somebody is. Raises
    HttpError if none is good."""
    refusal = HttpError(403, "The issuer sent no token.")
    for name in ("access_token", "id_token"):
        token = answer.get(name)
        if isinstance(token, str):
            try:
                await recognise(authenticator, Headers({"x-auth-token": printable(token)}))
            except HttpError as error:
                if error.status not in (400, 401):
                    raise
                refusal = HttpError(403, f"The issuer's token is not accepted: {error.message}")
            else:
                return token
    raise refusal


def refresh_in(answer: dict[str, Any]) -> str | None:
    found = answer.get("refresh_token")
    return found if isinstance(found, str) and found.isascii() and found.isprintable() else None


def printable(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable():
        raise bad_request("A token is needed.")
    return token


def is_due(token: str, now: float) -> bool:
    """Whether a token is to be renewed. It says itself when it expires; it was checked before."""
    parts = unverified(token)
    claims = {} if parts is None else parts[1]
    expires, issued = claims.get("exp"), claims.get("iat")
    if not isinstance(expires, int | float):
        return False
    early = float(EARLY_SECONDS)
    if isinstance(issued, int | float):
        early = min(early, max(expires - issued, 0) / 4)
    return now >= expires - early


def parts_of(request: Request, sealed: str, seconds: int = SESSION_SECONDS) -> tuple[str, ...]:
    """All cookies of a session; those that it does not take are cleared, for they may be of a
    longer one before."""
    cut = (sealed[at : at + LONGEST_COOKIE] for at in range(0, LONGEST_SESSION, LONGEST_COOKIE))
    return tuple(
        cookie(
            request,
            name,
            part,
            path=PREFIX,
            seconds=seconds if part else 0,
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
