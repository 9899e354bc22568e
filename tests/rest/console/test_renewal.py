"""Sessions of people who signed in at an issuer go on when its tokens expire."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx2
import pytest

from dovetail.rest.auth.identity import digest_of
from dovetail.rest.auth.oidc import Oidc
from dovetail.rest.auth.settings import OidcSettings
from dovetail.rest.console import session_cookies
from dovetail.rest.console.session_cookies import SESSION_SECONDS, Session
from tests.rest.auth.issuer import AUDIENCE
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.console.test_oidc_login import LoginIssuer, signed_in
from tests.rest.console.test_session import cookie_in

USAGE = "/console/api/dovetail/v1/usage"
OVER, NOT_YET = -40, 20
"""Seconds that a token is good for: beyond what clocks may be apart, and in its last quarter."""


@pytest.fixture
def issuer() -> Iterator[LoginIssuer]:
    found = LoginIssuer()
    yield found
    found.server.stop()


@pytest.fixture
def client(serve: Make, issuer: LoginIssuer) -> Client:
    settings = OidcSettings(issuer=issuer.url, audience=(AUDIENCE,), client_id="console")
    return serve("secure", authenticator=Oidc(settings), oidc=settings)


def token(issuer: LoginIssuer, seconds: int, who: str = "jo") -> str:
    now = int(time.time())
    return issuer.token(sub=who, iat=now - 300, exp=now + seconds)


def session(client: Client, issuer: LoginIssuer, seconds: int, refresh: str = "r1") -> str:
    """The cookies of somebody who signed in, and whose token is good for so many seconds."""
    issuer.tokens = {"access_token": issuer.token(), "refresh_token": refresh}
    assert signed_in(client, issuer).status_code == 200
    kept = Session(token(issuer, seconds), refresh, int(time.time()))
    return cookies_of(client, kept)


def cookies_of(client: Client, kept: Session) -> str:
    seal = client.application._backend.seal
    return f"dovetail_session={client.run(seal.close_up('dovetail_session', kept.content()))}"


def ask(client: Client, cookie: str, path: str = USAGE) -> httpx2.Response:
    return client.get(path, x_auth_token="", cookie=cookie)


def test_a_session_begins_with_what_renews_it(client: Client, issuer: LoginIssuer) -> None:
    issuer.tokens = {"access_token": token(issuer, OVER + 70), "refresh_token": "r1"}
    cookie = cookie_in(signed_in(client, issuer))
    issuer.worth["r1"] = {"access_token": issuer.token(sub="mia"), "refresh_token": "r2"}
    answer = ask(client, cookie, "/console/me")
    assert answer.json()["user"] == "mia"


@pytest.mark.parametrize("seconds", [OVER, NOT_YET])
def test_a_token_that_expires_is_renewed_with_the_next_request(
    client: Client, issuer: LoginIssuer, seconds: int
) -> None:
    cookie = session(client, issuer, seconds)
    issuer.worth["r1"] = {"access_token": issuer.token(), "refresh_token": "r2"}
    answer = ask(client, cookie)
    assert answer.status_code == 200
    [kept, *_] = answer.headers.get_list("set-cookie")
    assert kept.endswith("HttpOnly; SameSite=Strict")
    assert 0 < int(kept.split("Max-Age=")[1].partition(";")[0]) <= SESSION_SECONDS
    # The new one is good, and needs nothing for now.
    issuer.server.stop()
    again = ask(client, cookie_in(answer))
    issuer.server.start()
    assert again.status_code == 200
    assert "set-cookie" not in again.headers


def test_pages_and_streams_of_other_doors_set_the_cookie_too(
    client: Client, issuer: LoginIssuer
) -> None:
    for path in ("/console/why", "/console/hosts/nowhere", USAGE):
        cookie = session(client, issuer, OVER, path)
        issuer.worth[path] = {"access_token": issuer.token()}
        assert ask(client, cookie, path).headers.get_list("set-cookie"), path


def test_what_the_issuer_keeps_is_used_again(client: Client, issuer: LoginIssuer) -> None:
    """Issuers need not send a new refresh token."""
    cookie = session(client, issuer, OVER)
    issuer.worth["r1"] = {"access_token": token(issuer, OVER + 70)}
    cookie = cookie_in(ask(client, cookie))
    client.application._backend.issuer._renewed.drop(digest_of("r1"))
    issuer.worth["r1"] = {"access_token": issuer.token(sub="later")}
    assert ask(client, cookie, "/console/me").json()["user"] == "later"


def test_tabs_that_ask_at_the_same_time_renew_once(client: Client, issuer: LoginIssuer) -> None:
    cookie = session(client, issuer, OVER)
    issuer.worth["r1"] = {"access_token": issuer.token(), "refresh_token": "r2"}
    forms = len(issuer.forms)

    async def all_at_once() -> list[int]:
        asked = (client.send("GET", USAGE, x_auth_token="", cookie=cookie) for _ in range(8))
        return [each.status_code for each in await asyncio.gather(*asked)]

    assert client.run(all_at_once()) == [200] * 8
    # One that had the old cookie, and asks a moment later.
    assert ask(client, cookie).status_code == 200
    assert len(issuer.forms) == forms + 1


def test_a_session_that_is_not_renewed_ends(client: Client, issuer: LoginIssuer) -> None:
    cookie = session(client, issuer, OVER)
    assert ask(client, cookie).status_code == 401
    assert ask(client, cookie, "/console").status_code == 303
    asked = len(issuer.forms)
    assert ask(client, cookie).status_code == 401
    assert len(issuer.forms) == asked, "what was refused is not asked about again"


def test_as_long_as_its_token_is_good_it_goes_on(client: Client, issuer: LoginIssuer) -> None:
    """Another worker may have used the refresh token a moment ago."""
    assert ask(client, session(client, issuer, NOT_YET)).status_code == 200


def test_while_the_issuer_is_away_nothing_is_lost(client: Client, issuer: LoginIssuer) -> None:
    cookie = session(client, issuer, OVER)
    issuer.worth["r1"] = {"access_token": issuer.token()}
    issuer.server.stop()
    assert ask(client, cookie).status_code == 401
    issuer.server.start()
    assert ask(client, cookie).status_code == 200


def test_twelve_hours_after_signing_in_it_is_over(client: Client, issuer: LoginIssuer) -> None:
    session(client, issuer, OVER)
    old = Session(token(issuer, OVER), "r1", int(time.time()) - SESSION_SECONDS)
    issuer.worth["r1"] = {"access_token": issuer.token()}
    answer = ask(client, cookies_of(client, old))
    assert answer.status_code == 401
    assert all("Max-Age=0" in each for each in answer.headers.get_list("set-cookie"))
    assert "r1" in issuer.worth


def test_a_token_that_leaves_no_room_is_kept_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Session("t" * 60, "r" * 40, 5)
    assert Session.of(kept.content()) == kept
    monkeypatch.setattr(session_cookies, "LONGEST_CONTENT", 80)
    assert Session.of(kept.content()) == Session("t" * 60)


def test_other_tokens_are_not_renewed(client: Client, issuer: LoginIssuer) -> None:
    assert not session_cookies.is_due("opaque", time.time())
    assert not session_cookies.is_due(issuer.token(exp="soon"), time.time())
    assert session_cookies.is_due(issuer.token(exp=int(time.time()) + 59), time.time())
    assert ask(client, cookies_of(client, Session("opaque"))).status_code == 401
