"""Ways in as they are configured, alone and together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.config.values import BadSettings
from dovetail.rest.auth.chain import AuthenticatorChain, authenticator_of
from dovetail.rest.auth.keystone import Keystone
from dovetail.rest.auth.oidc import Oidc
from dovetail.rest.auth.settings import AuthSettings, KeystoneSettings, OidcSettings
from dovetail.rest.auth.tokens import StaticTokens, fingerprint
from tests.rest.auth.clock import Clock
from tests.rest.auth.issuer import AUDIENCE, Issuer
from tests.rest.auth.keystone_server import PASSWORD, KeystoneServer
from tests.rest.client import Client
from tests.rest.conftest import Make

LISTING = "/resource_providers"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f"[[tokens]]\nuser = 'ops'\nroles = ['admin']\nsha256 = '{fingerprint('static')}'"
    )
    return path


@pytest.fixture
def door(
    serve: Make, issuer: Issuer, keystone_server: KeystoneServer, token_file: Path, clock: Clock
) -> Client:
    credential = token_file.with_name("credential")
    credential.write_text(PASSWORD)
    keystone = KeystoneSettings(url=keystone_server.url, credential_file=str(credential))
    ways = (
        StaticTokens(token_file),
        Oidc(OidcSettings(issuer=issuer.url, audience=(AUDIENCE,)), clock, clock.monotonic),
        Keystone(keystone, clock, clock.monotonic),
    )
    return serve("secure", authenticator=AuthenticatorChain(ways))


def status(client: Client, token: str) -> int:
    return client.get(LISTING, x_auth_token=token).status_code


def test_each_way_lets_in_its_own(
    door: Client, issuer: Issuer, keystone_server: KeystoneServer
) -> None:
    keystone_server.issue("of-keystone", "admin")
    assert status(door, "static") == 200
    assert keystone_server.questions == 0
    assert status(door, issuer.token()) == 200
    assert status(door, "of-keystone") == 200
    assert status(door, issuer.token(roles=["reader"])) == 403


def test_who_none_of_them_knows_is_told_all_of_them(
    door: Client, issuer: Issuer, keystone_server: KeystoneServer
) -> None:
    refused = door.get(LISTING, x_auth_token="")
    told = f'Bearer realm="dovetail", Keystone uri="{keystone_server.url}"'
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, told)
    expired = door.get(LISTING, x_auth_token=issuer.token(exp=1))
    assert expired.status_code == 401
    assert "The token has expired." in expired.headers["www-authenticate"]


def test_one_that_is_down_does_not_shut_out_those_of_the_others(
    door: Client, issuer: Issuer, keystone_server: KeystoneServer
) -> None:
    keystone_server.server.stop()
    try:
        assert status(door, "static") == 200
        assert status(door, issuer.token()) == 200
        assert status(door, "of-keystone") == 503
    finally:
        keystone_server.server.start()


OIDC = OidcSettings(issuer="https://issuer.example", audience=("dovetail",))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ways": ()}, "no way in"),
        ({"ways": ("tokens",)}, "needs --tokens FILE"),
        ({"ways": ("noauth2", "oidc"), "oidc": OIDC}, "cannot be combined"),
        ({"ways": ("oidc",)}, "needs --oidc-issuer"),
        ({"ways": ("oidc",), "oidc": OidcSettings(issuer="https://i.example")}, "--oidc-audience"),
        (
            {"ways": ("oidc",), "oidc": OidcSettings(issuer="http://i.example", audience=("d",))},
            "http://i.example could be forged",
        ),
        ({"ways": ("keystone",)}, "needs --keystone-url"),
        (
            {
                "ways": ("oidc",),
                "oidc": OidcSettings(
                    issuer="https://i.example", audience=("d",), ca_file="/nowhere"
                ),
            },
            "certificates to trust",
        ),
        (
            {
                "ways": ("keystone",),
                "keystone": KeystoneSettings(url="https://k.example", credential_file="/nowhere"),
            },
            "no file /nowhere",
        ),
        *(
            (
                {
                    "ways": ("keystone",),
                    "keystone": KeystoneSettings(url=url, credential_file=__file__),
                },
                complaint,
            )
            for url, complaint in (
                ("http://k.example/v3", "--keystone-plain-http-beyond-loopback"),
                ("http://127.0.0.1.example/v3", "could be read on the way"),
                ("k.example/v3", "no address such as https://"),
                ("https:///v3", "no address such as https://"),
                ("http://[::1", "no address such as https://"),
            )
        ),
    ],
)
def test_settings_that_let_in_nobody_or_everybody(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadSettings, match=complaint):
        authenticator_of(AuthSettings(**settings))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://k.example/v3", False),
        ("http://localhost:5000", False),
        ("http://[::1]:5000/v3", False),
        ("http://k.example/v3", True),
    ],
)
def test_keystone_is_asked_where_nobody_listens_in_or_it_was_said_so(url: str, told: bool) -> None:
    settings = KeystoneSettings(url=url, credential_file=__file__, plain_http_beyond_loopback=told)
    made = authenticator_of(AuthSettings(ways=("keystone",), keystone=settings))
    assert isinstance(made, Keystone)


def test_several_ways_are_made_from_settings(token_file: Path) -> None:
    made = authenticator_of(
        AuthSettings(ways=("tokens", "oidc", "tokens"), tokens=str(token_file), oidc=OIDC)
    )
    assert made.challenges == ('Bearer realm="dovetail"',)
    assert isinstance(made, AuthenticatorChain)
