"""Pages of another origin that use the API from a browser."""

from __future__ import annotations

import pytest

from tests.rest.client import Client
from tests.rest.conftest import Make

ORIGIN = "https://console.example"


@pytest.fixture
def client(serve: Make) -> Client:
    return serve(cors_origin=ORIGIN)


def test_a_page_may_send_a_token_and_a_body(client: Client) -> None:
    wanted = "X-Auth-Token, content-type,openstack-api-version"
    reply = client.call(
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


def test_it_may_not_say_what_proxies_say(client: Client) -> None:
    reply = client.call(
        "OPTIONS", "/", origin=ORIGIN, access_control_request_headers="x-roles, x-forwarded-for"
    )
    assert reply.headers["access-control-allow-headers"] == ""


def test_answers_and_errors_alike_are_for_that_origin_only(client: Client) -> None:
    for path in ("/resource_providers", "/nowhere"):
        allowed = client.get(path, origin=ORIGIN)
        assert allowed.headers["access-control-allow-origin"] == ORIGIN
        assert "x-openstack-request-id" in allowed.headers["access-control-expose-headers"]
        other = client.get(path, origin=f"{ORIGIN}.evil.example")
        assert "access-control-allow-origin" not in other.headers


def test_caches_are_told_that_answers_differ_by_origin(client: Client, serve: Make) -> None:
    for headers in ({"origin": ORIGIN}, {}):
        reply = client.get("/resource_providers", **headers)
        assert reply.headers["vary"] == "openstack-api-version, origin"
    assert serve().get("/resource_providers").headers["vary"] == "openstack-api-version"
