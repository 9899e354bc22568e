"""Static tokens, and the file that knows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.rest.auth.tokens import BadTokenFile, StaticTokens, fingerprint
from tests.rest.client import Client
from tests.rest.conftest import Make

LISTING = "/resource_providers"


def entry(user: str, roles: str, project: str | None = None) -> str:
    lines = [
        "[[tokens]]",
        f'user = "{user}"',
        f"roles = {roles}",
        f'sha256 = "{fingerprint(f"secret-of-{user}")}"',
    ]
    return "\n".join([*lines, f'project = "{project}"' if project else "", ""])


OPS, WATCHER = entry("ops", '["admin"]'), entry("watcher", '["reader"]', "blue")


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(OPS + WATCHER)
    return path


def status(client: Client, token: str) -> int:
    return client.get(LISTING, x_auth_token=token).status_code


def test_static_tokens(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    assert status(client, "secret-of-ops") == 200
    bearer = client.get(LISTING, x_auth_token="", authorization="Bearer secret-of-ops")
    assert bearer.status_code == 200
    for wrong in ("admin", "secret-of-op", fingerprint("secret-of-ops"), "é", ""):
        assert status(client, wrong) == 401
    assert status(client, "secret-of-watcher") == 403


def test_who_is_refused_is_told_how_to_get_in(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    without = client.get(LISTING, x_auth_token="")
    assert without.headers["www-authenticate"] == 'Bearer realm="dovetail"'
    wrong = client.get(LISTING, x_auth_token="guess")
    told = 'Bearer realm="dovetail", error="invalid_token"'
    assert wrong.headers["www-authenticate"] == told


def test_x_roles_is_not_believed_with_static_tokens(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    reply = client.get(LISTING, x_auth_token="secret-of-watcher", x_roles="admin")
    assert reply.status_code == 403


def test_a_reader_sees_the_usages_of_its_own_project(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    own = client.get("/usages?project_id=blue", x_auth_token="secret-of-watcher")
    other = client.get("/usages?project_id=green", x_auth_token="secret-of-watcher")
    assert (own.status_code, other.status_code) == (200, 403)


def test_a_revoked_token_is_refused_at_once_however_the_file_changes(
    serve: Make, token_file: Path
) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    assert status(client, "secret-of-ops") == 200
    token_file.write_text(WATCHER)
    assert [status(client, "secret-of-ops") for _ in range(3)] == [401, 401, 401]
    new = token_file.with_suffix(".new")
    new.write_text(OPS + WATCHER)
    new.replace(token_file)
    assert status(client, "secret-of-ops") == 200
    token_file.write_text("")
    assert status(client, "secret-of-ops") == 401


def test_a_change_is_seen_though_size_and_time_stay_the_same(serve: Make, token_file: Path) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    assert status(client, "secret-of-ops") == 200
    before = token_file.stat()
    token_file.write_text(token_file.read_text().replace('"admin"', '"nimda"'))
    os.utime(token_file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert token_file.stat().st_size == before.st_size
    assert status(client, "secret-of-ops") == 403


@pytest.mark.parametrize("damage", ["[[tokens]]\nuser = 'x'", "[[tok", None])
def test_a_file_damaged_while_serving_takes_nobody_out(
    serve: Make, token_file: Path, damage: str | None
) -> None:
    client = serve("secure", authenticator=StaticTokens(token_file))
    if damage is None:
        token_file.unlink()
    else:
        token_file.write_text(damage)
    assert (status(client, "secret-of-ops"), status(client, "guess")) == (200, 401)


@pytest.mark.parametrize(
    "text",
    [
        "tokens = 3",
        "[[tokens]]\nuser = 'x'",
        "not toml",
        "[[tokens]]\nuser='x'\nsha256='12'",
        OPS.replace("ops", "", 1),
    ],
)
def test_a_bad_token_file_is_told_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(BadTokenFile, match=r"tokens\.toml"):
        StaticTokens(path)


def test_a_token_that_is_there_twice_would_have_roles_that_depend_on_the_order(
    token_file: Path,
) -> None:
    token_file.write_text(OPS + WATCHER + OPS.replace("admin", "reader"))
    with pytest.raises(BadTokenFile, match="the token of ops is there twice"):
        StaticTokens(token_file)
