"""Signing in at an issuer, by a browser: the redirects, the cookies on them, and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from dovetail.rest.console.session_cookies import SESSION_PARTS
from tests.console.conftest import Open
from tests.rest.auth.issuer import AUDIENCE
from tests.rest.auth.local_server import Reply
from tests.rest.console.test_oidc_login import LoginIssuer
from tests.support import server
from tests.support.paths import DOVETAIL

MANY_GROUPS = [f"/departments/engineering/teams/team-{number:03}" for number in range(150)]
"""A token that says them takes several cookies."""


class RedirectingIssuer(LoginIssuer):
    """At which whoever comes is signed in already, and sent back; on another site than ours."""

    def __init__(self) -> None:
        super().__init__()
        self.url = self.url.replace("127.0.0.1", "localhost")
        self.keys_are_at = f"{self.url}/keys"
        self.refusal: str | None = None
        self.asked: list[dict[str, str]] = []

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        where = urlsplit(path)
        if where.path != "/authorize":
            return super()._answer(method, path, headers, body)
        asked = {key: values[0] for key, values in parse_qs(where.query).items()}
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.challenges[code] = asked["code_challenge"]
        found = {"code": code} if self.refusal is None else {"error": self.refusal}
        back = f"{asked['redirect_uri']}?{urlencode({**found, 'state': asked['state']})}"
        return 303, {"location": back}, None


@pytest.fixture(scope="module")
def issuer() -> Iterator[RedirectingIssuer]:
    found = RedirectingIssuer()
    yield found
    found.server.stop()


@pytest.fixture(scope="module")
def guarded(issuer: RedirectingIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the demo fleet whose callers are those whom the issuer knows."""
    folder = tmp_path_factory.mktemp("guarded")
    command = [DOVETAIL, "serve", "--demo", "--auth", "oidc", "--oidc-issuer", issuer.url]
    command += ["--oidc-audience", AUDIENCE, "--oidc-client-id", "console"]
    with server.running(command, folder / "log", cwd=folder, own_group=True) as started:
        yield started.url


def test_somebody_signs_in_sees_the_fleet_and_signs_out(
    guarded: str, issuer: RedirectingIssuer, browse: Open
) -> None:
    issuer.refusal = None
    issuer.tokens = {"access_token": issuer.token(sub="jo", groups=MANY_GROUPS)}
    browsing = browse(f"{guarded}/console?class=FPGA")
    page = browsing.page
    expect(page).to_have_url(re.compile(r"/console/login\?next="))
    page.get_by_role("link", name="organisation's account").click()

    expect(page).to_have_url(f"{guarded}/console?class=FPGA")
    expect(page.locator(".headline")).to_contain_text("FPGA free")
    expect(page.locator("header .caller")).to_contain_text("jo")
    # The code is not in the history, nor the token anywhere that a script can read it.
    [asked] = issuer.asked
    assert asked["code_challenge_method"] == "S256"
    kept = {each["name"]: each for each in browsing.context.cookies(f"{guarded}/console")}
    assert len(kept) > 1
    assert kept.keys() < {*SESSION_PARTS}
    for cookie in kept.values():
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.locator(".headline")).to_contain_text("FPGA free")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="organisation's account")).to_be_visible()
    assert browsing.context.cookies(f"{guarded}/console") == []
    page.goto(f"{guarded}/console")
    expect(page).to_have_url(re.compile("/console/login"))
    assert browsing.barriers() == []


def test_who_is_refused_there_is_not_let_in(
    guarded: str, issuer: RedirectingIssuer, browse: Open
) -> None:
    issuer.refusal = "access_denied"
    browsing = browse(f"{guarded}/console/login")
    browsing.page.get_by_role("link", name="organisation's account").click()
    expect(browsing.page.get_by_role("main")).to_contain_text("access_denied")
    assert browsing.context.cookies(f"{guarded}/console") == []
    [refused] = browsing.complaints()
    assert refused.startswith("403: GET")
    browsing.forget()
