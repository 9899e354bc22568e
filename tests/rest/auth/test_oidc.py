"""Tokens of an OpenID Connect issuer: which get in, as whom, and which do not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import warnings
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from structlog.testing import capture_logs

from dovetail.rest.auth.oidc import Oidc
from dovetail.rest.auth.settings import OidcSettings
from tests.rest.auth.clock import Clock
from tests.rest.auth.issuer import AUDIENCE, Issuer
from tests.rest.client import Client
from tests.rest.conftest import Make

LISTING = "/resource_providers"


@pytest.fixture
def door(serve: Make, issuer: Issuer, clock: Clock) -> Client:
    return guarded(serve, issuer, clock)


def guarded(serve: Make, issuer: Issuer, clock: Clock, /, **more: Any) -> Client:
    chosen = OidcSettings(**{"issuer": issuer.url, "audience": (AUDIENCE,), **more})
    return serve("secure", authenticator=Oidc(chosen, clock, clock.monotonic))


def get(client: Client, token: str, path: str = LISTING) -> httpx2.Response:
    return client.get(path, x_auth_token="", authorization=f"Bearer {token}")


def refusal(client: Client, token: str) -> str:
    reply = get(client, token)
    assert reply.status_code == 401
    return str(reply.headers["www-authenticate"])


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def test_a_good_token_gets_in_either_way_it_is_sent(door: Client, issuer: Issuer) -> None:
    assert get(door, issuer.token()).status_code == 200
    assert door.get(LISTING, x_auth_token=issuer.token()).status_code == 200


def test_keys_are_fetched_once(door: Client, issuer: Issuer) -> None:
    for _ in range(5):
        assert get(door, issuer.token()).status_code == 200
    assert issuer.fetches == 1


def test_keys_may_be_named_by_address(serve: Make, issuer: Issuer, clock: Clock) -> None:
    client = guarded(serve, issuer, clock, jwks_url=f"{issuer.url}/keys")
    assert get(client, issuer.token()).status_code == 200


def test_rsa_keys_and_tokens_without_a_key_name(door: Client, issuer: Issuer) -> None:
    rsa = RSAKey.generate_key(2048, {"kid": "rsa"})
    issuer.published.append(rsa)
    assert get(door, issuer.token(rsa)).status_code == 200
    assert get(door, issuer.token(rsa, header={"kid": None})).status_code == 200


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated:joserfc.errors.SecurityWarning:joserfc")
@pytest.mark.parametrize("name", ["Ed25519", "EdDSA"])
def test_edwards_curve_signatures_by_either_name(door: Client, issuer: Issuer, name: str) -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "edwards"})
    encrypting = OKPKey.generate_key("X25519", {"kid": "x"})
    issuer.published += [encrypting, key]
    tokens = [issuer.token(key, header={"alg": name, **more}) for more in ({}, {"kid": None})]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [get(door, token).status_code for token in tokens] == [200, 200]
    forged = OKPKey.generate_key("Ed25519", {"kid": "edwards"})
    refusal(door, issuer.token(forged, header={"alg": name}))


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 1_800_000_000 - 31}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "exp"),
        ({"nbf": 1_800_000_000 + 31}, "not yet valid"),
        ({"iat": 1_800_000_000 + 31}, "issued in the future"),
        ({"aud": "another-service"}, "aud"),
        ({"aud": ["another", "third"]}, "aud"),
        ({"aud": None}, "aud"),
        ({"iss": "https://elsewhere.example"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"sub": None}, "who it is for"),
        ({"sub": ""}, "who it is for"),
    ],
)
def test_what_a_token_must_say(
    door: Client, issuer: Issuer, claims: dict[str, Any], reason: str
) -> None:
    told = refusal(door, issuer.token(**claims))
    assert told.startswith('Bearer realm="dovetail", error="invalid_token", error_description="')
    assert reason in told


def test_clocks_may_be_a_little_apart(door: Client, issuer: Issuer, clock: Clock) -> None:
    late = issuer.token(exp=int(clock()) - 29, nbf=int(clock()) + 29, aud=["x", AUDIENCE])
    assert get(door, late).status_code == 200


def test_a_token_expires_while_the_server_runs(door: Client, issuer: Issuer, clock: Clock) -> None:
    token = issuer.token(exp=int(clock()) + 60)
    assert get(door, token).status_code == 200
    clock.advance(89)
    assert get(door, token).status_code == 200
    clock.advance(2)
    assert "expired" in refusal(door, token)


def test_forged_signatures(door: Client, issuer: Issuer) -> None:
    other = ECKey.generate_key("P-256", {"kid": "first"})
    assert "none of the issuer's keys" in refusal(door, issuer.token(other))
    header, claims, signature = issuer.token().split(".")
    stated = json.loads(base64.urlsafe_b64decode(claims + "=="))
    raised = encoded(json.dumps({**stated, "sub": "root"}).encode())
    refusal(door, f"{header}.{raised}.{signature}")
    refusal(door, f"{header}.{claims}.")
    refusal(door, f"{header}.{claims}.AAAA")


def test_alg_none(door: Client, issuer: Issuer) -> None:
    claims = issuer.token().split(".")[1]
    for name in ("none", "None", "NONE"):
        header = encoded(json.dumps({"alg": name, "kid": "first"}).encode())
        assert "not accepted" in refusal(door, f"{header}.{claims}.")


def test_extensions_that_must_be_understood_are_not(door: Client, issuer: Issuer) -> None:
    for names in (["b64"], None):
        header, claims, signature = issuer.token().split(".")
        stated = json.loads(base64.urlsafe_b64decode(header + "=="))
        critical = encoded(json.dumps({**stated, "crit": names}).encode())
        assert "not accepted" in refusal(door, f"{critical}.{claims}.{signature}")


def test_the_public_key_is_no_shared_secret(door: Client, issuer: Issuer) -> None:
    """HS256 "signed" with what everybody can read at the issuer."""
    claims = issuer.token().split(".")[1]
    header = encoded(json.dumps({"alg": "HS256", "kid": "first"}).encode())
    assert isinstance(issuer.key, ECKey)
    for public in (issuer.key.as_pem(private=False), issuer.key.as_der(private=False)):
        signed = hmac.new(public, f"{header}.{claims}".encode(), hashlib.sha256).digest()
        assert "not accepted" in refusal(door, f"{header}.{claims}.{encoded(signed)}")


def test_keys_that_come_with_the_token_are_not_believed(door: Client, issuer: Issuer) -> None:
    own = ECKey.generate_key("P-256", {"kid": "first"})
    brought = {"jwk": own.as_dict(private=False), "jku": f"{issuer.url}/mine"}
    refusal(door, issuer.token(own, header=brought))


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_symmetric_encrypting_and_weak_keys_are_not_used(door: Client, issuer: Issuer) -> None:
    weak = RSAKey.generate_key(1024, {"kid": "weak"})
    shared = OctKey.generate_key(256, {"kid": "shared"})
    encrypting = ECKey.generate_key("P-256", {"kid": "enc", "use": "enc"})
    issuer.published += [weak, shared, encrypting]
    assert get(door, issuer.token()).status_code == 200
    for key in (weak, shared):
        refusal(door, issuer.token(issuer.key, header={"kid": key.kid}))
    signing = ECKey.import_key({**encrypting.as_dict(private=True), "use": "sig"})
    refusal(door, issuer.token(signing))
    refusal(door, issuer.token(weak))


@pytest.mark.parametrize(
    "token", ["a.b.c", "..", "e30.e30.", "W10.W10.x", "x", "a.b.c.d.e", "é.é.é"]
)
def test_what_is_no_token_at_all(door: Client, issuer: Issuer, token: str) -> None:
    assert get(door, token).status_code == 401
    assert issuer.fetches == 0


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
HEADERS = st.fixed_dictionaries({}, optional=dict.fromkeys(("alg", "kid", "b64"), JSON_VALUES))
CLAIMS = st.fixed_dictionaries({}, optional=dict.fromkeys(("iss", "exp", "aud"), JSON_VALUES))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(header=HEADERS | JSON_VALUES, claims=CLAIMS | JSON_VALUES, ours=st.booleans())
def test_tokens_full_of_nonsense(
    door: Client, issuer: Issuer, header: Any, claims: Any, ours: bool
) -> None:
    if ours and isinstance(header, dict) and isinstance(claims, dict):
        header, claims = {"alg": "ES256", **header}, {**claims, "iss": issuer.url}
    parts = (encoded(json.dumps(part).encode()) for part in (header, claims))
    assert get(door, ".".join((*parts, "AAAA"))).status_code in {401, 503}


def test_a_key_name_that_is_no_text(door: Client, issuer: Issuer) -> None:
    claims = issuer.token().split(".")[1]
    header = encoded(json.dumps({"alg": "ES256", "kid": ["first"]}).encode())
    refusal(door, f"{header}.{claims}.AAAA")


def test_claims_become_user_project_and_roles(serve: Make, issuer: Issuer, clock: Clock) -> None:
    client = guarded(
        serve,
        issuer,
        clock,
        user_claim="email",
        project_claim="https://dovetail.example/project",
        role_claims=("realm_access.roles", "scope"),
        role_names=("watchers=reader", "fleet:ops=admin"),
    )
    named: dict[str, Any] = {
        "email": "jo@example",
        "https://dovetail.example/project": "blue",
        "roles": ["admin"],
    }
    watcher = issuer.token(**named, realm_access={"roles": ["watchers", "admin"]})
    assert get(client, watcher, "/usages?project_id=blue").status_code == 200
    assert get(client, watcher, "/usages?project_id=green").status_code == 403
    assert get(client, watcher).status_code == 403
    ops = issuer.token(**named, scope="openid fleet:ops")
    assert get(client, ops).status_code == 200


@pytest.mark.parametrize("roles", [None, 3, {"admin": True}, [["admin"]], "administrator"])
def test_odd_roles_are_no_roles(door: Client, issuer: Issuer, roles: Any) -> None:
    assert get(door, issuer.token(roles=roles)).status_code == 403


def test_groups_are_roles_too(door: Client, issuer: Issuer) -> None:
    assert get(door, issuer.token(roles=None, groups=["admin"])).status_code == 200


def test_rotation_while_serving(door: Client, issuer: Issuer) -> None:
    old = issuer.token()
    assert get(door, old).status_code == 200
    issuer.rotate("second")
    assert get(door, issuer.token()).status_code == 200
    assert get(door, old).status_code == 200
    assert issuer.fetches == 2


def test_rotation_in_mid_flight_drops_no_request(door: Client, issuer: Issuer) -> None:
    """Requests with new tokens wait for one fetch, while those with old ones pass them by."""
    old = issuer.token()
    assert get(door, old).status_code == 200
    issuer.rotate("second")
    issuer.fetching.clear()
    issuer.may_answer.clear()

    async def send(token: str) -> int:
        return (await door.send("GET", LISTING, x_auth_token=token)).status_code

    async def rush() -> list[int]:
        new = [asyncio.create_task(send(issuer.token())) for _ in range(20)]
        await asyncio.to_thread(issuer.fetching.wait)
        passing = [await send(old) for _ in range(20)]
        assert not any(task.done() for task in new)
        issuer.may_answer.set()
        return passing + await asyncio.gather(*new)

    assert door.run(rush()) == [200] * 40
    assert issuer.fetches == 2


def test_a_key_published_during_a_fetch_is_found_by_the_next(door: Client, issuer: Issuer) -> None:
    assert get(door, issuer.token()).status_code == 200
    issuer.rotate("second")
    issuer.fetching.clear()
    issuer.may_answer.clear()

    async def send(token: str) -> int:
        return (await door.send("GET", LISTING, x_auth_token=token)).status_code

    async def rush() -> list[int]:
        first = asyncio.create_task(send(issuer.token()))
        await asyncio.to_thread(issuer.fetching.wait)
        issuer.rotate("third")
        second = asyncio.create_task(send(issuer.token()))
        for _ in range(10):
            await asyncio.sleep(0)
        issuer.may_answer.set()
        return [await first, await second]

    assert door.run(rush()) == [200, 200]
    assert issuer.fetches == 3


def test_a_withdrawn_key_is_refused_when_the_keys_are_fetched_again(
    door: Client, issuer: Issuer, clock: Clock
) -> None:
    token = issuer.token(exp=int(clock()) + 3600)
    assert get(door, token).status_code == 200
    issuer.published.clear()
    issuer.rotate("second")
    clock.advance(301)
    refusal(door, token)


def test_unknown_keys_cannot_make_the_server_bother_the_issuer(
    door: Client, issuer: Issuer, clock: Clock
) -> None:
    assert get(door, issuer.token()).status_code == 200
    unknown = [
        issuer.token(ECKey.generate_key("P-256", {"kid": f"unknown-{n}"})) for n in range(20)
    ]
    answers = [get(door, token) for token in unknown]
    assert {answer.status_code for answer in answers} == {401, 503}
    assert issuer.fetches == 5
    assert int(answers[-1].headers["retry-after"]) == 10
    assert get(door, issuer.token()).status_code == 200
    issuer.rotate("second")
    clock.advance(10)
    assert get(door, issuer.token()).status_code == 200


def test_known_keys_stay_good_while_the_issuer_is_down(
    door: Client, issuer: Issuer, clock: Clock
) -> None:
    assert get(door, issuer.token()).status_code == 200
    issuer.server.stop()
    try:
        clock.advance(3600)
        assert [get(door, issuer.token()).status_code for _ in range(10)] == [200] * 10
        issuer.rotate("second")
        unknown = get(door, issuer.token())
        assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "1")
        clock.advance(24 * 3600)
        assert get(door, issuer.token(issuer.published[0])).status_code == 503
    finally:
        issuer.server.start()
    clock.advance(10)
    assert get(door, issuer.token()).status_code == 200


def test_an_issuer_that_is_down_from_the_start(door: Client, issuer: Issuer, clock: Clock) -> None:
    issuer.server.stop()
    try:
        with capture_logs() as told:
            refused = get(door, issuer.token())
        assert refused.status_code == 503
        assert "cannot be reached" in told[0]["error"]
        assert door.get("/livez", x_auth_token=issuer.token()).status_code == 200
    finally:
        issuer.server.start()
    assert get(door, issuer.token()).status_code == 200


def test_discovery_of_another_issuer_is_not_believed(
    serve: Make, issuer: Issuer, clock: Clock
) -> None:
    client = guarded(serve, issuer, clock, issuer=f"{issuer.url}/")
    refused = get(client, issuer.token(iss=f"{issuer.url}/"))
    assert (refused.status_code, issuer.fetches) == (503, 0)


@pytest.mark.parametrize("address", ["http://keys.example/", "https://[::1", "keys", None])
def test_keys_are_not_fetched_from_where_they_could_be_forged(
    door: Client, issuer: Issuer, address: str | None
) -> None:
    issuer.keys_are_at = address
    assert get(door, issuer.token()).status_code == 503
    assert issuer.fetches == 0


# -- clocks that are set back --------------------------------------------------------------------


def test_a_withdrawn_key_is_refused_although_the_clock_was_set_back(
    door: Client, issuer: Issuer, clock: Clock
) -> None:
    token = issuer.token(iat=int(clock()) - 7200, exp=int(clock()) + 3600)
    assert get(door, token).status_code == 200
    issuer.published.clear()
    issuer.rotate("second")
    clock.set_back(3600)
    clock.advance(301)
    refusal(door, token)


def test_the_issuer_is_asked_for_keys_although_the_clock_was_set_back(
    door: Client, issuer: Issuer, clock: Clock
) -> None:
    for n in range(10):
        get(door, issuer.token(ECKey.generate_key("P-256", {"kid": f"unknown-{n}"})))
    clock.set_back(24 * 3600)
    issuer.rotate("second")
    clock.advance(10)
    assert get(door, issuer.token()).status_code == 200
