"""Signing in at an issuer: the code flow with PKCE, played against one on loopback."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import orjson
import pytest

from dovetail.rest.auth.oidc import Oidc
from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.auth.settings import OidcSettings
from dovetail.rest.server.audit_log import AuditLog
from tests.rest.auth.clock import Clock
from tests.rest.auth.issuer import AUDIENCE, Issuer
from tests.rest.auth.local_server import Reply
from tests.rest.client import Client
from tests.rest.conftest import Make

CALLBACK = "/console/oidc/callback"


class LoginIssuer(Issuer):
    """An issuer at which people sign in: every code is worth a token, once."""

    def __init__(self) -> None:
        self.challenges: dict[str, str] = {}
        self.tokens: dict[str, Any] = {}
        self.forms: list[dict[str, str]] = []
        self.proofs: list[str | None] = []
        self.discoveries = 0
        self.worth: dict[str, dict[str, Any]] = {}
        """Of refresh tokens, each good for once."""
        clock = Clock()
        clock.now = time.time()
        super().__init__(clock)

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if path == "/.well-known/openid-configuration":
            self.discoveries += 1
            places = {name: f"{self.url}/{name}" for name in ("authorize", "token")}
            return (
                200,
                {},
                {
                    "issuer": self.url,
                    "jwks_uri": self.keys_are_at,
                    "authorization_endpoint": places["authorize"],
                    "token_endpoint": places["token"],
                },
            )
        if path != "/token":
            return super()._answer(method, path, headers, body)
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        self.forms.append(form)
        self.proofs.append(headers.get("authorization"))
        if form["grant_type"] == "refresh_token":
            found = self.worth.pop(form["refresh_token"], None)
            return (400, {}, {"error": "invalid_grant"}) if found is None else (200, {}, found)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if self.challenges.pop(form["code"], None) != challenge:
            return 400, {}, {"error": "invalid_grant"}
        return 200, {}, self.tokens


@pytest.fixture
def issuer() -> Iterator[LoginIssuer]:
    found = LoginIssuer()
    yield found
    found.server.stop()


@pytest.fixture
def client(serve: Make, issuer: LoginIssuer, tmp_path: Path) -> Client:
    (tmp_path / "secret").write_text("s3cret/\n", encoding="utf-8")
    settings = OidcSettings(
        issuer=issuer.url,
        audience=(AUDIENCE,),
        client_id="console",
        client_secret_file=str(tmp_path / "secret"),
        scopes=("openid", "roles"),
    )
    return serve("secure", authenticator=Oidc(settings), oidc=settings)


def start(client: Client, there: str = "/console/why?query=a") -> tuple[dict[str, str], str]:
    """What the issuer is asked, and the cookie that waits."""
    answer = client.get(f"/console/oidc/start?next={there}", x_auth_token="")
    assert answer.status_code == 303
    where = urlsplit(answer.headers["location"])
    asked = {key: values[0] for key, values in parse_qs(where.query).items()}
    return asked, answer.headers["set-cookie"]


def come_back(client: Client, cookie: str, **query: str) -> httpx2.Response:
    return client.get(
        f"{CALLBACK}?{httpx2.QueryParams(query)}",
        x_auth_token="",
        cookie=cookie.partition(";")[0],
        sec_fetch_site="cross-site",
        accept="text/html",
    )


def signed_in(
    client: Client, issuer: LoginIssuer, begun: tuple[dict[str, str], str] | None = None
) -> httpx2.Response:
    asked, cookie = begun or start(client)
    issuer.challenges["c0de"] = asked["code_challenge"]
    return come_back(client, cookie, code="c0de", state=asked["state"])


def test_somebody_signs_in(client: Client, issuer: LoginIssuer) -> None:
    issuer.tokens = {"access_token": issuer.token(sub="jo")}
    answer = signed_in(client, issuer)
    assert answer.status_code == 200, answer.text
    # A cookie that is sent to nobody else's requests is not sent on the way back from elsewhere.
    assert '<meta http-equiv="refresh" content="0; url=/console/why?query=a">' in answer.text
    [kept, *_] = answer.headers.get_list("set-cookie")
    session = kept.partition(";")[0]
    assert "SameSite=Strict" in kept
    assert client.get("/console/me", x_auth_token="", cookie=session).json()["user"] == "jo"


def test_the_issuer_is_asked_as_it_should_be(client: Client, issuer: LoginIssuer) -> None:
    issuer.tokens = {"access_token": issuer.token()}
    asked, cookie = start(client)
    assert asked["redirect_uri"] == f"http://testserver{CALLBACK}"
    assert (asked["client_id"], asked["scope"]) == ("console", "openid roles")
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert re.search("Path=/console/oidc; Max-Age=600; HttpOnly; SameSite=Lax", cookie)
    signed_in(client, issuer)
    (form,) = issuer.forms
    assert (form["grant_type"], form["client_id"]) == ("authorization_code", "console")
    assert form["redirect_uri"] == asked["redirect_uri"]
    assert issuer.proofs == [f"Basic {base64.b64encode(b'console:s3cret%2F').decode()}"]


def test_a_token_that_says_who_somebody_is_does_where_the_other_is_not_for_us(
    client: Client, issuer: LoginIssuer
) -> None:
    begun = start(client)
    said = issuer.token(sub="mia", nonce=begun[0]["nonce"])
    issuer.tokens = {"access_token": "opaque", "id_token": said}
    session = signed_in(client, issuer, begun).headers["set-cookie"].partition(";")[0]
    assert client.get("/console/me", x_auth_token="", cookie=session).json()["user"] == "mia"


@pytest.mark.parametrize("tokens", [{}, {"access_token": "opaque"}, {"access_token": 5}])
def test_without_a_good_token_nobody_is_in(
    client: Client, issuer: LoginIssuer, tokens: dict[str, Any]
) -> None:
    issuer.tokens = tokens
    answer = signed_in(client, issuer)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_login_that_was_begun_elsewhere_is_refused(client: Client, issuer: LoginIssuer) -> None:
    asked, cookie = start(client)
    issuer.challenges["c0de"] = asked["code_challenge"]
    other, _ = start(client)
    assert come_back(client, cookie, code="c0de", state=other["state"]).status_code == 403
    assert come_back(client, cookie, code="c0de").status_code == 403
    assert (
        come_back(client, "dovetail_oidc=x", code="c0de", state=asked["state"]).status_code == 403
    )
    assert issuer.forms == []


def test_a_code_of_somebody_else_s_login_is_worth_nothing(
    client: Client, issuer: LoginIssuer
) -> None:
    issuer.tokens = {"access_token": issuer.token()}
    asked, cookie = start(client)
    issuer.challenges["stolen"] = "another"
    answer = come_back(client, cookie, code="stolen", state=asked["state"])
    assert answer.status_code == 403
    assert "invalid_grant" in answer.text


def test_who_is_refused_there_is_told_so(client: Client) -> None:
    asked, cookie = start(client)
    answer = come_back(client, cookie, error="<b>access_denied", state=asked["state"])
    assert answer.status_code == 403
    assert "&lt;b&gt;access_denied" in answer.text


@pytest.mark.parametrize("nonce", [None, "of another login", 5])
def test_a_token_of_another_login_is_refused(
    client: Client, issuer: LoginIssuer, nonce: str | None
) -> None:
    said = issuer.token(sub="mia", nonce=nonce)
    issuer.tokens = {"access_token": issuer.token(), "id_token": said}
    answer = signed_in(client, issuer)
    assert answer.status_code == 403
    assert "of another login" in answer.text


def test_what_waited_for_the_answer_is_cleared(client: Client, issuer: LoginIssuer) -> None:
    issuer.tokens = {"access_token": issuer.token()}
    cookies = signed_in(client, issuer).headers.get_list("set-cookie")
    assert "dovetail_oidc=; Path=/console/oidc; Max-Age=0; HttpOnly; SameSite=Lax" in cookies


def test_the_issuer_is_asked_about_itself_once_in_a_while(
    client: Client, issuer: LoginIssuer
) -> None:
    clock = Clock()
    client.application._backend.issuer._clock = clock
    for _ in range(5):
        start(client)
    assert issuer.discoveries == 1
    clock.advance(301)
    start(client)
    assert issuer.discoveries == 2


def test_one_that_does_not_answer_is_left_alone(client: Client, issuer: LoginIssuer) -> None:
    issuer.server.stop()
    try:
        answers = [client.get("/console/oidc/start", x_auth_token="") for _ in range(8)]
    finally:
        issuer.server.start()
    assert {each.status_code for each in answers} == {503}
    assert "retry-after" in answers[-1].headers


def test_beginning_to_sign_in_is_counted_for_the_address(serve: Make, issuer: LoginIssuer) -> None:
    settings = OidcSettings(issuer=issuer.url, audience=(AUDIENCE,), client_id="console")
    limiter = RateLimiter(0.001, 2)
    client = serve("secure", authenticator=Oidc(settings), oidc=settings, rate_limiter=limiter)
    issuer.tokens = {"access_token": issuer.token()}
    assert signed_in(client, issuer).status_code == 200, "one who means it gets in"
    found = [client.get("/console/oidc/start", x_auth_token="").status_code for _ in range(3)]
    assert found == [303, 429, 429]


def test_an_issuer_that_is_away_is_told(client: Client, issuer: LoginIssuer) -> None:
    issuer.server.stop()
    try:
        answer = client.get("/console/oidc/start", x_auth_token="")
    finally:
        issuer.server.start()
    assert answer.status_code == 503


def test_the_login_page_offers_it(client: Client) -> None:
    page = client.get("/console/login?next=/console/why", x_auth_token="").text
    assert 'href="/console/oidc/start?next=%2Fconsole%2Fwhy"' in page


def test_codes_are_not_in_the_log(
    client: Client, issuer: LoginIssuer, capsys: pytest.CaptureFixture[str]
) -> None:
    issuer.tokens = {"access_token": issuer.token()}
    signed_in(client, issuer)
    shown = capsys.readouterr().out
    assert CALLBACK in shown
    assert "c0de" not in shown


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("HEAD", f"{CALLBACK}?code=c0de"),
        ("POST", f"{CALLBACK}?code=c0de"),
        ("GET", f"{CALLBACK}/?code=c0de"),
        ("GET", "/console/oidc%2Fcallback?code=c0de"),
        ("GET", "/console/session?token=c0de"),
        ("GET", "/console/session/end?token=c0de"),
        ("GET", "/console/login?token=c0de"),
        ("GET", "/console/api/console/session?token=c0de"),
    ],
)
def test_nor_are_they_where_they_lead_nowhere(
    client: Client, capsys: pytest.CaptureFixture[str], method: str, path: str
) -> None:
    client.call(method, path, x_auth_token="")
    shown = capsys.readouterr().out
    assert path.partition("?")[0].replace("%2F", "/") in shown
    assert "c0de" not in shown


def test_logins_are_in_the_audit_log(serve: Make, issuer: LoginIssuer, tmp_path: Path) -> None:
    """They are a GET, and change something all the same."""
    settings = OidcSettings(issuer=issuer.url, audience=(AUDIENCE,), client_id="console")
    log = AuditLog(tmp_path / "audit.log")
    client = serve("secure", authenticator=Oidc(settings), oidc=settings, audit_log=log)
    issuer.tokens = {"access_token": issuer.token(sub="jo")}
    signed_in(client, issuer)
    come_back(client, "dovetail_oidc=x", code="c0de", state="x")
    text = (tmp_path / "audit.log").read_text()
    done, refused = map(orjson.loads, text.splitlines())
    assert (done["user"], done["path"], done["outcome"]) == ("jo", CALLBACK, "done")
    assert (refused["user"], refused["status"], refused["outcome"]) == (None, 403, "refused")
    assert "c0de" not in text
    log.close()


def test_without_a_client_there_is_no_such_login(serve: Make) -> None:
    assert serve().get("/console/oidc/start").status_code == 404
