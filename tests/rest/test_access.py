"""Who gets in, and what they may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.rest.access import BadTokenFile, StaticTokens, fingerprint
from dovetail.rest.policy import RULE_SETS
from tests.rest.conftest import Make


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f"""
        [[tokens]]
        user = "ops"
        roles = ["admin"]
        sha256 = "{fingerprint("secret-of-ops")}"
        [[tokens]]
        user = "watcher"
        project = "blue"
        roles = ["reader"]
        sha256 = "{fingerprint("secret-of-watcher")}"
        """
    )
    return path


def test_static_tokens(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    listing = "/resource_providers"
    assert client.get(listing, x_auth_token="secret-of-ops").status_code == 200
    bearer = client.get(listing, x_auth_token="", authorization="Bearer secret-of-ops")
    assert bearer.status_code == 200
    for wrong in ("admin", "secret-of-op", fingerprint("secret-of-ops"), ""):
        refused = client.get(listing, x_auth_token=wrong)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"]
    assert client.get(listing, x_auth_token="secret-of-watcher").status_code == 403


def test_x_roles_is_not_believed_with_static_tokens(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    reply = client.get("/resource_providers", x_auth_token="secret-of-watcher", x_roles="admin")
    assert reply.status_code == 403


def test_a_reader_sees_the_usages_of_its_own_project(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    own = client.get("/usages?project_id=blue", x_auth_token="secret-of-watcher")
    other = client.get("/usages?project_id=green", x_auth_token="secret-of-watcher")
    assert (own.status_code, other.status_code) == (200, 403)


@pytest.mark.parametrize("text", ["tokens = 3", "[[tokens]]\nuser = 'x'", "not toml"])
def test_a_bad_token_file_is_told_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(BadTokenFile, match=r"tokens\.toml"):
        StaticTokens(path)


def test_health_and_versions_need_no_token(serve: Make) -> None:
    client = serve("secure")
    for path in ("/", "/livez", "/readyz"):
        assert client.get(path, x_auth_token="").status_code == 200


@pytest.mark.parametrize(
    ("policy", "roles", "status"),
    [
        ("legacy", "admin", 204),
        ("legacy", "service", 403),
        ("secure", "admin", 403),
        ("secure", "service", 204),
        ("open", "nobody", 204),
    ],
)
def test_reshaping_by_rule_set(serve: Make, policy: str, roles: str, status: int) -> None:
    client = serve("open")
    uuid = client.call("POST", "/resource_providers", {"name": "host"}).json()["uuid"]
    strict = serve(policy)
    body = {
        "inventories": {uuid: {"resource_provider_generation": 0, "inventories": {}}},
        "allocations": {},
    }
    assert strict.call("POST", "/reshaper", body, x_roles=roles).status_code == status


def test_every_rule_set_is_named() -> None:
    assert set(RULE_SETS) == {"legacy", "secure", "open"}
