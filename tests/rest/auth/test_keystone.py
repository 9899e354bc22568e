"""Tokens of Keystone: asked about, remembered, revoked, and while it is down."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from dovetail.rest.auth.keystone import STRANGERS_AT_ONCE, Keystone
from dovetail.rest.auth.settings import KeystoneSettings
from tests.rest.auth.clock import Clock
from tests.rest.auth.keystone_server import HOUR, PASSWORD, KeystoneServer
from tests.rest.client import Client
from tests.rest.conftest import Make

LISTING = "/resource_providers"


@pytest.fixture
def credential(tmp_path: Path) -> Path:
    path = tmp_path / "credential"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture
def door(serve: Make, keystone_server: KeystoneServer, clock: Clock, credential: Path) -> Client:
    return guarded(serve, keystone_server, clock, credential)


def guarded(
    serve: Make, server: KeystoneServer, clock: Clock, credential: Path, **more: Any
) -> Client:
    settings = KeystoneSettings(url=server.url, credential_file=str(credential), **more)
    return serve("secure", authenticator=Keystone(settings, clock, clock.monotonic))


def status(client: Client, token: str, path: str = LISTING) -> int:
    return client.get(path, x_auth_token=token).status_code


def test_a_good_token_gets_in_with_its_roles(door: Client, keystone_server: KeystoneServer) -> None:
    assert status(door, keystone_server.issue("of-admin", "admin")) == 200
    reader = keystone_server.issue("of-reader", "reader")
    assert status(door, reader, "/usages?project_id=blue") == 200
    assert status(door, reader, "/usages?project_id=green") == 403
    bearer = door.get(LISTING, x_auth_token="", authorization="Bearer of-admin")
    assert bearer.status_code == 200


@pytest.mark.parametrize(
    "scope",
    [{"system": {"all": True}}, {"domain": {"id": "d-1", "name": "Tenants"}}],
    ids=["system", "domain"],
)
def test_roles_in_a_system_or_a_domain_are_not_roles_in_a_project(
    door: Client, keystone_server: KeystoneServer, scope: dict[str, Any]
) -> None:
    token = keystone_server.issue("of-others", "admin", "service", project=None, **scope)
    assert status(door, token) == 403
    assert status(door, token, "/usages?project_id=blue") == 403


def test_a_token_is_asked_about_once_a_while(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin")
    assert [status(door, token) for _ in range(5)] == [200] * 5
    assert keystone_server.questions == 1
    clock.advance(60)
    assert status(door, token) == 200
    assert keystone_server.questions == 2
    assert len(keystone_server.logins) == 1


def test_requests_that_come_together_ask_once(
    door: Client, keystone_server: KeystoneServer
) -> None:
    token = keystone_server.issue("good", "admin")

    async def rush() -> list[int]:
        sent = (door.send("GET", LISTING, x_auth_token=token) for _ in range(20))
        return [reply.status_code for reply in await asyncio.gather(*sent)]

    assert door.run(rush()) == [200] * 20
    assert (keystone_server.questions, len(keystone_server.logins)) == (1, 1)


def test_a_bad_token_is_refused_and_not_asked_about_again_and_again(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    refused = door.get(LISTING, x_auth_token="guess")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Keystone uri="{keystone_server.url}"'
    assert [status(door, "guess") for _ in range(3)] == [401] * 3
    assert keystone_server.questions == 1
    keystone_server.issue("guess", "admin")
    clock.advance(30)
    assert status(door, "guess") == 200


def test_an_expired_token_is_refused(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("short", "admin", seconds=20)
    assert status(door, token) == 200
    clock.advance(20)
    assert status(door, token) == 401
    assert status(door, keystone_server.issue("old", "admin", seconds=-1)) == 401


def test_a_revoked_token_is_refused_at_the_next_question(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin")
    assert status(door, token) == 200
    keystone_server.revoke(token)
    clock.advance(60)
    assert [status(door, token) for _ in range(2)] == [401, 401]


def test_the_service_token_is_renewed_before_it_expires(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin", seconds=3 * HOUR)
    assert status(door, token) == 200
    clock.advance(HOUR - 30)
    assert status(door, token) == 200
    assert len(keystone_server.logins) == 2


def test_a_service_token_that_was_revoked_is_renewed(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin")
    assert status(door, token) == 200
    keystone_server.service_tokens.clear()
    clock.advance(60)
    assert status(door, token) == 200
    assert len(keystone_server.logins) == 2


def test_while_keystone_is_down_known_tokens_stay_good_until_they_expire(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin", seconds=600)
    assert status(door, token) == 200
    keystone_server.server.stop()
    try:
        clock.advance(500)
        assert [status(door, token) for _ in range(3)] == [200] * 3
        unknown = door.get(LISTING, x_auth_token="another")
        assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "5")
        clock.advance(100)
        assert status(door, token) == 401
    finally:
        keystone_server.server.start()
    clock.advance(5)
    assert status(door, keystone_server.issue("another", "admin")) == 200


@pytest.mark.parametrize("failure", [500, 503, 429, 403])
def test_a_keystone_that_fails_makes_no_token_good_or_bad(
    door: Client, keystone_server: KeystoneServer, clock: Clock, failure: int
) -> None:
    known = keystone_server.issue("known", "admin")
    assert status(door, known) == 200
    keystone_server.fails_with = failure
    clock.advance(60)
    assert (status(door, known), status(door, "unknown")) == (200, 503)
    keystone_server.fails_with = None
    assert (status(door, known), status(door, "unknown")) == (200, 401)


def test_a_wrong_password_is_told_and_a_corrected_one_is_taken(
    door: Client, keystone_server: KeystoneServer, clock: Clock, credential: Path
) -> None:
    credential.write_text("wrong")
    token = keystone_server.issue("good", "admin")
    with capture_logs() as told:
        assert status(door, token) == 503
    assert "login of Dovetail with 401" in told[0]["error"]
    assert [status(door, token) for _ in range(3)] == [503] * 3
    assert len(keystone_server.logins) == 1
    credential.write_text(PASSWORD)
    clock.advance(5)
    assert status(door, token) == 200


def test_what_is_wrong_here_is_told_to_the_log_and_not_to_strangers(
    door: Client, credential: Path
) -> None:
    credential.unlink()
    with capture_logs() as told:
        refused = door.get(LISTING, x_auth_token="guess")
    assert refused.status_code == 503
    assert "The token cannot be checked now." in refused.text
    assert credential.name not in refused.text
    assert str(credential) in told[0]["error"]


def test_strangers_do_not_keep_known_tokens_from_being_checked(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    """Many more of them than there are connections; the revoked one is still found out."""
    good, revoked = (keystone_server.issue(name, "admin") for name in ("good", "revoked"))
    assert (status(door, good), status(door, revoked)) == (200, 200)
    keystone_server.revoke(revoked)
    clock.advance(60)
    keystone_server.may_answer.clear()

    async def send(token: str) -> int:
        return (await door.send("GET", LISTING, x_auth_token=token)).status_code

    async def rush() -> tuple[int, int, int, set[int]]:
        strangers = [asyncio.create_task(send(f"slow-{n}")) for n in range(50)]
        for _ in range(STRANGERS_AT_ONCE):
            await asyncio.to_thread(keystone_server.arrived.acquire)
        answers = await send(good), await send(revoked), len(keystone_server.busy_with)
        keystone_server.may_answer.set()
        return *answers, set(await asyncio.gather(*strangers))

    assert door.run(rush()) == (200, 401, STRANGERS_AT_ONCE, {401})


def test_what_is_sent_to_log_in(
    serve: Make, keystone_server: KeystoneServer, clock: Clock, credential: Path
) -> None:
    token = keystone_server.issue("good", "admin")
    by_user = guarded(serve, keystone_server, clock, credential, user="fitter")
    by_key = guarded(serve, keystone_server, clock, credential, application_credential="abc")
    assert (status(by_user, token), status(by_key, token)) == (200, 200)
    default = {"name": "Default"}
    user = {"name": "fitter", "domain": default, "password": PASSWORD}
    assert keystone_server.logins == [
        {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": "service", "domain": default}},
            }
        },
        {
            "auth": {
                "identity": {
                    "methods": ["application_credential"],
                    "application_credential": {"id": "abc", "secret": PASSWORD},
                }
            }
        },
    ]


@pytest.mark.parametrize("token", ["é", "x" * 8193, "a\tb"])
def test_what_cannot_be_a_token_is_not_sent(
    door: Client, keystone_server: KeystoneServer, token: str
) -> None:
    assert status(door, token) == 401
    assert keystone_server.questions == 0


def test_bad_tokens_do_not_drive_out_good_ones(
    serve: Make, keystone_server: KeystoneServer, clock: Clock, credential: Path
) -> None:
    client = guarded(serve, keystone_server, clock, credential, cached_tokens=3)
    good = keystone_server.issue("good", "admin")
    assert status(client, good) == 200
    assert {status(client, f"guess-{n}") for n in range(10)} == {401}
    assert status(client, good) == 200
    assert keystone_server.questions == 11


# -- clocks that are set back --------------------------------------------------------------------


def test_a_revoked_token_is_refused_although_the_clock_was_set_back(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin")
    assert status(door, token) == 200
    keystone_server.revoke(token)
    clock.set_back(HOUR)
    clock.advance(60)
    assert status(door, token) == 401


def test_a_token_that_was_bad_is_asked_about_again_although_the_clock_was_set_back(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    assert status(door, "guess") == 401
    clock.set_back(HOUR)
    keystone_server.issue("guess", "admin")
    clock.advance(30)
    assert status(door, "guess") == 200


def test_keystone_is_asked_again_although_the_clock_was_set_back_while_it_was_down(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin")
    keystone_server.server.stop()
    try:
        assert status(door, token) == 503
        clock.set_back(HOUR)
    finally:
        keystone_server.server.start()
    clock.advance(5)
    assert status(door, token) == 200


def test_the_service_token_is_renewed_although_the_clock_was_set_back(
    door: Client, keystone_server: KeystoneServer, clock: Clock
) -> None:
    token = keystone_server.issue("good", "admin", seconds=9 * HOUR)
    assert status(door, token) == 200
    clock.set_back(HOUR)
    clock.advance(HOUR - 30)
    assert status(door, token) == 200
    assert len(keystone_server.logins) == 2
