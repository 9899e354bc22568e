"""Login at an OpenID Connect issuer: the authorization code flow with PKCE (RFC 7636).

State, nonce and verifier wait in a short-lived sealed cookie; the token that comes back becomes a
session as one that somebody typed in would, with what renews it if the issuer sent that. The cookie
of the session is not sent on the way back from another site (SameSite=Strict), so the answer is a
page of ours that goes on by itself.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from typing import Any
from urllib.parse import urlencode

import msgspec

from dovetail.rest.auth.oidc import unverified
from dovetail.rest.auth.settings import OidcSettings
from dovetail.rest.console.addresses import PREFIX, local_address
from dovetail.rest.console.markup import element, link
from dovetail.rest.console.session import session_cookies
from dovetail.rest.console.session_cookies import Session, accepted_token, cookie, refresh_in
from dovetail.rest.console.shell import HTML, plain_page
from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply

COOKIE = "dovetail_oidc"
PATH = f"{PREFIX}/oidc"
LOGIN_SECONDS = 600


class LoginUnderWay(msgspec.Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    next: str


async def start(call: Call) -> Reply:
    """GET /console/oidc/start."""
    settings = settings_of(call)
    call.count_stranger()
    login = LoginUnderWay(
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
        next=local_address(call.query.get("next")),
    )
    digest = hashlib.sha256(login.verifier.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": settings.client_id,
        "redirect_uri": call.url(f"{PATH}/callback"),
        "scope": " ".join(settings.scopes),
        "state": login.state,
        "nonce": login.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    place = (await call.backend.issuer.endpoints()).authorization
    kept = await call.backend.seal.close_up(COOKIE, msgspec.json.encode(login).decode())
    headers = {
        "location": f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}",
    }
    waiting = waiting_cookie(call, kept, LOGIN_SECONDS)
    return Reply(303, headers=headers, content_type=None, cookies=(waiting,))


def waiting_cookie(call: Call, kept: str, seconds: int) -> str:
    return cookie(call.request, COOKIE, kept, path=PATH, seconds=seconds, same_site="Lax")


async def callback(call: Call) -> Reply:
    """GET /console/oidc/callback: back from the issuer, with a code or a refusal."""
    settings_of(call)
    login = await under_way(call)
    forget_attempt = call.count_stranger()
    state, code = call.query.get("state") or "", call.query.get("code")
    if not secrets.compare_digest(state.encode(), login.state.encode()):
        raise HttpError(403, "This login was begun somewhere else: sign in again.")
    if code is None:
        raise HttpError(403, f"The issuer did not let you in: {call.query.get('error')}.")
    answer = await exchanged(call, code, login)
    forget_attempt()
    kept = await session_of(call, answer)
    onwards = plain_page(
        "Signed in",
        element("h1", "Signed in"),
        element("p", link(login.next, "Go on")),
        refresh=login.next,
    )
    # What waited was worth one login.
    return Reply(200, onwards, content_type=HTML, cookies=(*kept, waiting_cookie(call, "", 0)))


def settings_of(call: Call) -> OidcSettings:
    if call.backend.oidc.client_id is None:
        raise not_found("There is no issuer to sign in with.")
    return call.backend.oidc


async def under_way(call: Call) -> LoginUnderWay:
    kept = call.request.cookies.get(COOKIE, "")
    opened = await call.backend.seal.open_up(COOKIE, kept, LOGIN_SECONDS)
    if opened is None:
        raise HttpError(403, "This login took too long, or was begun somewhere else: try again.")
    return msgspec.json.decode(opened, type=LoginUnderWay)


async def session_of(call: Call, answer: dict[str, Any]) -> tuple[str, ...]:
    token = await accepted_token(call.backend.authenticator, answer)
    session = Session(token, refresh_in(answer), int(time.time()))
    try:
        return await session_cookies(call, session)
    except HttpError as error:
        if error.status != 400:
            raise
        raise HttpError(403, f"The issuer's token is not accepted: {error.message}") from error


async def exchanged(call: Call, code: str, login: LoginUnderWay) -> dict[str, Any]:
    """The tokens that a code is worth. One that says who somebody is has to be of this login."""
    form = {
        "code": code,
        "redirect_uri": call.url(f"{PATH}/callback"),
        "code_verifier": login.verifier,
    }
    answer = await call.backend.issuer.tokens_for_code(form)
    said = answer.get("id_token")
    parts = unverified(said) if isinstance(said, str) else None
    if parts is not None and parts[1].get("nonce") != login.nonce:
        raise HttpError(403, "The issuer's token is of another login: sign in again.")
    return answer
