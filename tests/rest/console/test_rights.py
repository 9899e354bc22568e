"""What a caller may: the navigation offers that and nothing else, and a refusal is no dead end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from dovetail.rest.auth.tokens import StaticTokens
from tests.rest.auth.test_tokens import OPS, entry
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, numa_hosts, uid
from tests.rest.intents.client import GROUP_SPEC, IntentsClient, make_group, named

OPERATOR = {"x_auth_token": "secret-of-ops", "accept": "text/html"}
READER = {"x_auth_token": "secret-of-rea", "accept": "text/html"}
NOBODY = {"x_auth_token": "secret-of-nil", "accept": "text/html"}
"""Known, with no role."""


@pytest.fixture
def guarded(serve: Make, tmp_path: Path) -> Client:
    """A server with hosts, and intents in two projects, of which the reader has one."""
    path = tmp_path / "tokens.toml"
    path.write_text(OPS + entry("rea", '["reader"]', "p") + entry("nil", "[]"))
    made = serve("legacy")
    load(made, *numa_hosts(1))
    intents = IntentsClient(made)
    make_group(intents)
    intents.made("projects", named("secret-project"))
    apps = "projects/secret-project/composite-apps"
    intents.made(apps, named("c", compositeAppVersion="v1"))
    intents.made(f"{apps}/c/v1/deployment-intent-groups", named("g", **GROUP_SPEC))
    return serve("secure", authenticator=StaticTokens(path))


def offered(page: str) -> list[str]:
    """Where the navigation leads."""
    found = re.search(r"<nav [^>]*>(.*?)</nav>", page)
    assert found, page
    return re.findall('href="([^"]*)"', found[1])


def page_of(client: Client, path: str, who: Mapping[str, str], status: int) -> str:
    answer = client.get(path, **who)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def test_the_navigation_offers_what_the_caller_may(guarded: Client) -> None:
    every = offered(page_of(guarded, "/console", OPERATOR, 200))
    assert {"/console", "/console/why", "/console/audit", "/console/intents"} <= {*every}
    assert offered(page_of(guarded, "/console/intents", READER, 200)) == ["/console/intents"]


def test_the_way_in_leads_to_the_first_view_that_is_shown(guarded: Client) -> None:
    for path in ("/console", "/console/"):
        answer = guarded.get(path, **READER)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/intents")
    assert guarded.get("/console", **OPERATOR).status_code == 200


def test_who_may_see_nothing_is_told_so_and_can_leave(guarded: Client) -> None:
    page = page_of(guarded, "/console", NOBODY, 403)
    assert offered(page) == []
    assert "Sign out" in page


@pytest.mark.parametrize("path", ["/holders", "/audit", "/why?query=resources=VCPU:1", "/machines"])
def test_a_refusal_has_the_navigation_and_the_way_out(guarded: Client, path: str) -> None:
    status = 200 if path.startswith("/why") else 403
    page = page_of(guarded, f"/console{path}", READER, status)
    assert "Policy does not allow" in page
    assert offered(page) == ["/console/intents"]
    assert "Sign out" in page


@pytest.mark.parametrize("path", [f"/hosts/{uid('gone')}", "/nothing", "/holders/nobody"])
def test_what_is_not_there_is_no_dead_end(guarded: Client, path: str) -> None:
    page = page_of(guarded, f"/console{path}", OPERATOR, 404)
    assert "/console/why" in offered(page)
    assert "Sign out" in page


def test_strangers_are_shown_no_navigation(guarded: Client) -> None:
    answer = guarded.get("/console/static/nothing.css", x_auth_token="", accept="text/html")
    assert answer.status_code == 404
    assert "<nav" not in answer.text


def test_intents_are_those_of_the_caller_s_own_project(guarded: Client) -> None:
    page = page_of(guarded, "/console/intents", READER, 200)
    assert "/console/intents/p/c/v1/g" in page
    assert "secret-project" not in page
    page_of(guarded, "/console/intents?project_id=secret-project", READER, 403)


def test_scripts_are_told_whether_intents_of_all_are_shown(guarded: Client) -> None:
    of_all = [
        guarded.get("/console/me", **who).json()["may"]["intents_of_all"]
        for who in (OPERATOR, READER, NOBODY)
    ]
    assert of_all == [True, False, False]
