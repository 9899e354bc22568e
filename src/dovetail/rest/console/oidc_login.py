"""Login at an OpenID Connect issuer: the authorization code flow with PKCE (RFC 7636).

State and verifier wait in a short-lived sealed cookie; the token that comes back becomes a session
as one that somebody typed in would. The cookie of the session is not sent on the way back from
another site (SameSite=Strict), so the answer is a page of ours that goes on by itself.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from dovetail.rest.auth.identity import CannotTell
from dovetail.rest.auth.issuer_keys import DISCOVERY
from dovetail.rest.auth.outbound import Outbound
from dovetail.rest.auth.settings import OidcSettings, is_protected
from dovetail.rest.console.entrance import PREFIX
from dovetail.rest.console.markup import element, link
from dovetail.rest.console.session import cookie, local_address, session_cookies
from dovetail.rest.console.shell import HTML, plain_page
from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply

COOKIE = "dovetail_oidc"
PATH = f"{PREFIX}/oidc"
LOGIN_SECONDS = 600


class LoginUnderWay(msgspec.Struct, frozen=True):
    state: str
    verifier: str
    next: str


async def start(call: Call) -> Reply:
    """GET /console/oidc/start."""
    settings = settings_of(call)
    login = LoginUnderWay(
        state=secrets.token_urlsafe(24),
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
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    place = (await endpoints(settings))["authorization_endpoint"]
    kept = await call.backend.seal.close_up(COOKIE, msgspec.json.encode(login).decode())
    headers = {
        "location": f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}",
    }
    waiting = cookie(call.request, COOKIE, kept, path=PATH, seconds=LOGIN_SECONDS, same_site="Lax")
    return Reply(303, headers=headers, content_type=None, cookies=(waiting,))


async def callback(call: Call) -> Reply:
    """GET /console/oidc/callback: back from the issuer, with a code or a refusal."""
    settings = settings_of(call)
    login = await under_way(call)
    state, code = call.query.get("state") or "", call.query.get("code")
    if not secrets.compare_digest(state.encode(), login.state.encode()):
        raise HttpError(403, "This login was begun somewhere else: sign in again.")
    if code is None:
        raise HttpError(403, f"The issuer did not let you in: {call.query.get('error')}.")
    kept = await session_of(call, await exchanged(call, settings, code, login.verifier))
    onwards = plain_page(
        "Signed in",
        element("h1", "Signed in"),
        element("p", link(login.next, "Go on")),
        refresh=login.next,
    )
    return Reply(200, onwards, content_type=HTML, cookies=kept)


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
    """The access token if it is meant for us, else the one that says who somebody is."""
    refusal = HttpError(403, "The issuer sent no token.")
    for name in ("access_token", "id_token"):
        token = answer.get(name)
        if isinstance(token, str):
            try:
                return await session_cookies(call, token)
            except HttpError as error:
                if error.status not in (400, 401):
                    raise
                refusal = HttpError(403, f"The issuer's token is not accepted: {error.message}")
    raise refusal


# -- the issuer ----------------------------------------------------------------------------------


async def endpoints(settings: OidcSettings) -> dict[str, str]:
    """Where the issuer says that people and codes go."""
    assert settings.issuer is not None
    http = Outbound("The issuer", settings.ca_file, settings.timeout_seconds)
    try:
        found = await http.get(settings.issuer.rstrip("/") + DISCOVERY)
    except CannotTell as error:
        raise HttpError(503, "The issuer cannot be reached.") from error
    finally:
        await http.close()
    if found.get("issuer") != settings.issuer:
        raise HttpError(503, "The discovery document is of another issuer.")
    places = {name: found.get(name) for name in ("authorization_endpoint", "token_endpoint")}
    if not all(isinstance(each, str) and is_protected(each) for each in places.values()):
        raise HttpError(503, "The issuer does not say where to sign in.")
    return {name: str(each) for name, each in places.items()}


async def exchanged(call: Call, settings: OidcSettings, code: str, verifier: str) -> dict[str, Any]:
    """The tokens that a code is worth."""
    assert settings.client_id is not None
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": call.url(f"{PATH}/callback"),
        "client_id": settings.client_id,
        "code_verifier": verifier,
    }
    place = (await endpoints(settings))["token_endpoint"]
    http = Outbound("The issuer", settings.ca_file, settings.timeout_seconds)
    try:
        answer = await http.ask("POST", place, form=form, headers=client_proof(settings))
    except CannotTell as error:
        raise HttpError(503, "The issuer cannot be reached.") from error
    finally:
        await http.close()
    if answer.status != 200:
        raise HttpError(403, f"The issuer did not take the code: {answer.document.get('error')}.")
    return answer.document


def client_proof(settings: OidcSettings) -> dict[str, str]:
    """HTTP basic authentication (RFC 6749, 2.3.1), where the client has a secret."""
    if settings.client_secret_file is None or settings.client_id is None:
        return {}
    try:
        secret = Path(settings.client_secret_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise HttpError(503, "The client's secret cannot be read.") from error
    pair = f"{quote(settings.client_id, safe='')}:{quote(secret, safe='')}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
