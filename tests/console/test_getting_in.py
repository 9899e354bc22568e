"""Getting in by a browser: a token once, a session that ends, and only what one may is offered."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Open
from tests.rest.auth.test_tokens import OPS, WATCHER
from tests.support import server
from tests.support.paths import DOVETAIL


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the demo fleet that wants to know who asks."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tokens.toml").write_text(OPS + WATCHER)
    command = [DOVETAIL, "serve", "--demo", "--auth", "tokens", "--tokens", "tokens.toml"]
    with server.running(command, folder / "log", cwd=folder, own_group=True) as started:
        yield started.url


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_token_once_leads_to_where_one_wanted_to_go(guarded: str, browse: Open) -> None:
    browsing = browse(f"{guarded}/console/holders?project=green")
    page = browsing.page
    expect(page).to_have_url(re.compile(r"/console/login\?next="))
    assert browsing.barriers() == []
    sign_in(page, "a guess")
    expect(page.get_by_role("alert")).to_be_visible()
    assert browsing.barriers() == []
    [refused] = browsing.complaints()
    assert refused.startswith("401: POST")
    browsing.forget()

    sign_in(page, "secret-of-ops")
    expect(page).to_have_url(f"{guarded}/console/holders?project=green")
    expect(page.get_by_role("main")).to_contain_text("green")
    [cookie] = browsing.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert "secret" not in cookie["value"]
    assert page.evaluate("document.cookie") == ""

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.goto(f"{guarded}/console")
    expect(page).to_have_url(re.compile("/console/login"))


def test_who_may_nothing_is_told_so_and_offered_nothing(guarded: str, browse: Open) -> None:
    browsing = browse(f"{guarded}/console/why?query=resources%3DVCPU%3A1")
    sign_in(browsing.page, "secret-of-watcher")
    expect(browsing.page.get_by_role("main")).to_contain_text("This is not shown to watcher")
    expect(browsing.page.get_by_role("button", name=re.compile("Claim|Move"))).to_have_count(0)
    assert browsing.barriers() == []
    browsing.page.wait_for_load_state("networkidle")
    # Nothing was asked for that would have been refused.
    assert browsing.complaints() == []


def test_who_is_shown_nothing_is_no_prisoner(guarded: str, browse: Open) -> None:
    browsing = browse(f"{guarded}/console")
    page = browsing.page
    sign_in(page, "secret-of-watcher")
    expect(page.get_by_role("main")).to_contain_text("This is not shown to watcher")
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_count(0)
    [refused] = browsing.complaints()
    assert refused.startswith("403: GET")
    browsing.forget()
    assert browsing.barriers() == []
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_page_of_another_site_cannot_claim(guarded: str, browse: Open) -> None:
    """Not even with the cookie: it is not sent, and would not be enough."""
    browsing = browse(f"{guarded}/console/login")
    sign_in(browsing.page, "secret-of-ops")
    expect(browsing.page.get_by_role("main")).to_contain_text("rack1")
    browsing.page.goto("about:blank")
    done = browsing.page.evaluate(
        """(address) => fetch(address, {
             method: "POST", mode: "no-cors", credentials: "include",
             body: JSON.stringify({query: "resources=VCPU:1"}),
           }).then((it) => it.type, (error) => "refused")""",
        f"{guarded}/console/api/dovetail/v1/claims",
    )
    assert done in {"opaque", "refused"}
    browsing.forget()
    page = browsing.page
    page.goto(f"{guarded}/console/decisions")
    expect(page.get_by_role("main")).to_contain_text("No decision is kept")
