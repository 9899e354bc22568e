"""Headers of answers: against misreading and keeping them, and for pages of another origin."""

from __future__ import annotations

import pytest

from dovetail.rest.server.headers import ALWAYS
from tests.rest.client import Client
from tests.rest.conftest import Make

ORIGIN = "https://console.example"


@pytest.mark.parametrize("path", ["/", "/livez", "/resource_providers", "/nowhere", "/dovetail/x"])
def test_every_answer_has_them(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert {name: headers[name] for name in ALWAYS} == ALWAYS


def test_own_answers_are_not_kept(client: Client) -> None:
    assert client.get("/dovetail/v1/fleet", version="1.0").headers["cache-control"] == "no-store"
    assert client.get("/dovetail/nothing").headers["cache-control"] == "no-store"


def test_what_placement_says_about_caches_stays(client: Client) -> None:
    assert "cache-control" not in client.get("/resource_providers", version="1.14").headers
    newer = client.get("/resource_providers", version="1.15")
    assert newer.headers["cache-control"] == "no-cache"


# -- pages of another origin ---------------------------------------------------------------------


@pytest.fixture
def shared(serve: Make) -> Client:
    """A server that pages of another origin may use."""
    return serve(cors_origin=ORIGIN)


def test_a_page_may_send_a_token_and_a_body(shared: Client) -> None:
    wanted = "X-Auth-Token, content-type,openstack-api-version"
    reply = shared.call(
        "OPTIONS",
        "/resource_providers",
        x_auth_token="",
        origin=ORIGIN,
        access_control_request_method="POST",
        access_control_request_headers=wanted,
    )
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == ORIGIN
    allowed = reply.headers["access-control-allow-headers"].split(", ")
    assert sorted(allowed) == ["content-type", "openstack-api-version", "x-auth-token"]
    assert "POST" in reply.headers["access-control-allow-methods"]


def test_it_may_not_say_what_proxies_say(shared: Client) -> None:
    reply = shared.call(
        "OPTIONS", "/", origin=ORIGIN, access_control_request_headers="x-roles, x-forwarded-for"
    )
    assert reply.headers["access-control-allow-headers"] == ""


def test_answers_and_errors_alike_are_for_that_origin_only(shared: Client) -> None:
    for path in ("/resource_providers", "/nowhere"):
        allowed = shared.get(path, origin=ORIGIN)
        assert allowed.headers["access-control-allow-origin"] == ORIGIN
        assert "x-openstack-request-id" in allowed.headers["access-control-expose-headers"]
        other = shared.get(path, origin=f"{ORIGIN}.evil.example")
        assert "access-control-allow-origin" not in other.headers


def test_caches_are_told_that_answers_differ_by_origin(shared: Client, serve: Make) -> None:
    for headers in ({"origin": ORIGIN}, {}):
        reply = shared.get("/resource_providers", **headers)
        assert reply.headers["vary"] == "openstack-api-version, origin"
    assert serve().get("/resource_providers").headers["vary"] == "openstack-api-version"
