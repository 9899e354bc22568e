"""The way into the console: whose request it is, and which pages may have it sent."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from dovetail.rest.auth.tokens import StaticTokens
from tests.rest.client import Client
from tests.rest.conftest import Make

OWN = {"sec_fetch_site": "same-origin", "x_dovetail_console": "1"}
NOBODY = {"x_auth_token": "", "version": "1.39"}


def provider(name: str = "host1") -> dict[str, str]:
    return {"name": name, "uuid": str(uuid4())}


def make(client: Client, path: str = "/console/api/resource_providers", **headers: str) -> int:
    return client.call("POST", path, provider(), x_auth_token="", **headers).status_code


# -- who asks ------------------------------------------------------------------------------------


def test_without_authentication_whoever_looks_is_the_administrator(client: Client) -> None:
    assert client.get("/console/me", x_auth_token="").json()["user"] == "admin"


def test_a_token_in_a_header_counts(client: Client) -> None:
    told = client.get("/console/me", x_auth_token="mia:lab").json()
    assert (told["user"], told["project"], told["roles"]) == ("mia", "lab", [])


def test_what_a_caller_may_is_told(client: Client) -> None:
    assert client.get("/console/me").json()["may"]["claim"] is True
    assert client.get("/console/me", x_auth_token="mia").json()["may"]["claim"] is False


def test_elsewhere_the_administrator_still_needs_a_token(client: Client) -> None:
    assert client.get("/resource_providers", x_auth_token="").status_code == 401


@pytest.fixture
def guarded(serve: Make, tmp_path: Path) -> Client:
    (tmp_path / "tokens.toml").write_text("", encoding="utf-8")
    return serve(authenticator=StaticTokens(tmp_path / "tokens.toml"))


def test_strangers_are_led_to_the_login(guarded: Client) -> None:
    answer = guarded.get("/console/holders?q=a%20b", x_auth_token="")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/login?next=%2Fconsole%2Fholders%3Fq%3Da%2520b"


def test_strangers_are_told_so_by_the_api(guarded: Client) -> None:
    answer = guarded.get("/console/api/dovetail/v1/usage", x_auth_token="")
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


def test_strangers_get_the_stylesheet(guarded: Client) -> None:
    assert guarded.get("/console/static/plain.css", x_auth_token="").status_code == 200


# -- the passage to other doors ------------------------------------------------------------------


def test_below_api_are_the_paths_of_all_doors(client: Client) -> None:
    made = provider()
    client.call("POST", "/resource_providers", made)
    through = client.get(f"/console/api/resource_providers/{made['uuid']}", x_auth_token="")
    assert through.json()["name"] == made["name"]
    assert client.get("/console/api/dovetail/v1/usage", x_auth_token="").json() == {"classes": {}}
    assert client.get("/console/api/livez").text == "ok\n"


def test_placement_speaks_its_newest_version_there_unless_told_otherwise(client: Client) -> None:
    newest = client.run(client._http.get("/console/api/resource_providers"))
    assert newest.headers["openstack-api-version"] == "placement 1.39"
    asked = client.get("/console/api/resource_providers", version="1.10")
    assert asked.headers["openstack-api-version"] == "placement 1.10"


def test_the_passage_leads_not_into_itself_for_ever(client: Client) -> None:
    assert client.get("/console/api/console/api/livez").status_code == 404


def test_the_policy_is_the_same_there(client: Client) -> None:
    assert client.get("/console/api/dovetail/v1/usage", x_auth_token="mia").status_code == 403


# -- pages of other sites ------------------------------------------------------------------------


def test_scripts_of_the_console_may_write(client: Client) -> None:
    assert make(client, **OWN) in (200, 201)


def test_browsers_that_tell_the_origin_alone_may_write(client: Client) -> None:
    assert make(client, origin="http://testserver", x_dovetail_console="1") in (200, 201)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_dovetail_console": "1"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "cross-site", "x_dovetail_console": "1"},
        {"sec_fetch_site": "same-site", "x_dovetail_console": "1"},
        {"sec_fetch_site": "none", "x_dovetail_console": "1"},
        {"origin": "http://evil.example", "x_dovetail_console": "1"},
        {"origin": "null", "x_dovetail_console": "1"},
        {"origin": "http://[", "x_dovetail_console": "1"},
        {
            "sec_fetch_site": "cross-site",
            "origin": "http://testserver",
            "x_dovetail_console": "1",
        },
    ],
)
def test_others_may_not_write(client: Client, headers: dict[str, str]) -> None:
    assert make(client, **headers) == 403
    assert client.get("/resource_providers").json() == {"resource_providers": []}


def test_others_may_not_even_ask_the_api(client: Client) -> None:
    answer = client.get("/console/api/dovetail/v1/usage", sec_fetch_site="cross-site")
    assert answer.status_code == 403


def test_links_from_elsewhere_lead_to_pages(client: Client) -> None:
    assert client.get("/console/holders", sec_fetch_site="cross-site").status_code == 200
