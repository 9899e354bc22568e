"""Believing every caller, and what needs no caller at all."""

from __future__ import annotations

from tests.rest.conftest import Make


def test_the_token_says_who_it_is_and_x_roles_what_it_may(serve: Make) -> None:
    client = serve("secure")
    assert client.get("/resource_providers", x_auth_token="admin").status_code == 200
    assert client.get("/resource_providers", x_auth_token="jo").status_code == 403
    served = client.get("/resource_providers", x_auth_token="jo", x_roles="service")
    assert served.status_code == 200
    own = client.get("/usages?project_id=blue", x_auth_token="jo:blue", x_roles="reader")
    assert own.status_code == 200


def test_without_a_token_the_answer_is_401(serve: Make) -> None:
    refused = serve("open").get("/resource_providers", x_auth_token="")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "X-Auth-Token"


def test_health_and_versions_need_no_token(serve: Make) -> None:
    client = serve("secure")
    for path in ("/", "/livez", "/readyz"):
        assert client.get(path, x_auth_token="").status_code == 200
