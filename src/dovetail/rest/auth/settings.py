"""Settings of authentication: which ways in are open, and how issuers of tokens are asked."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from dovetail.config.declaration import SettingsStruct

Way = Literal["tokens", "oidc", "keystone", "noauth2"]
Algorithm = Literal[
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
]
"""Asymmetric ones only: with a symmetric one, whoever can check tokens can also make them.
`EdDSA` is what RFC 8037 called `Ed25519` before it got a name of its own."""
Mapped = Annotated[str, Meta(pattern="^[^=]+=[^=]+$")]
Seconds = Annotated[float, Meta(gt=0)]


class OidcSettings(SettingsStruct, frozen=True):
    """Bearer tokens of an OpenID Connect issuer."""

    issuer: Annotated[
        str | None, Meta(description="The issuer, exactly as its tokens name it (`iss`).")
    ] = None
    audience: Annotated[
        tuple[str, ...], Meta(description="Tokens have to be meant for one of these (`aud`).")
    ] = ()
    jwks_url: Annotated[
        str | None,
        Meta(description="Where the issuer's keys are; otherwise its discovery document says."),
    ] = None
    algorithms: Annotated[
        tuple[Algorithm, ...], Meta(description="Signatures that are accepted.")
    ] = ("RS256", "PS256", "ES256", "Ed25519", "EdDSA")
    leeway_seconds: Annotated[
        int, Meta(ge=0, le=300, description="How far the clocks may be apart.")
    ] = 30
    user_claim: Annotated[str, Meta(description="The claim that is the user.")] = "sub"
    project_claim: Annotated[
        str | None, Meta(description="The claim that is the project, if any is.")
    ] = None
    role_claims: Annotated[
        tuple[str, ...],
        Meta(description="Claims that hold roles; dots lead into objects (`realm_access.roles`)."),
    ] = ("roles", "groups")
    role_names: Annotated[
        tuple[Mapped, ...],
        Meta(
            description="Roles by what the issuer calls them, such as `fleet-operators=admin`; "
            "if any are given, nothing else is a role."
        ),
    ] = ()
    client_id: Annotated[
        str | None,
        Meta(
            description="What the issuer knows the console as; with it, people sign in there "
            "(authorization code with PKCE). Its redirect address is `/console/oidc/callback` of "
            "this server."
        ),
    ] = None
    client_secret_file: Annotated[
        str | None,
        Meta(
            description="File with the console's secret, if the issuer wants one; read "
            "at each login."
        ),
    ] = None
    scopes: Annotated[
        tuple[str, ...],
        Meta(
            description="What the console asks the issuer for when people sign in; with "
            "`offline_access` many send what sessions are renewed with."
        ),
    ] = ("openid",)
    ca_file: Annotated[
        str | None,
        Meta(description="Certificates to trust the issuer by, instead of the system's."),
    ] = None
    timeout_seconds: Annotated[Seconds, Meta(description="How long the issuer may take.")] = 5.0


class KeystoneSettings(SettingsStruct, frozen=True):
    """Tokens of OpenStack Keystone, and how to ask it about them."""

    url: Annotated[
        str | None, Meta(description="Keystone's address, such as `https://keystone.example/v3`.")
    ] = None
    plain_http_beyond_loopback: Annotated[
        bool,
        Meta(
            description="Needed to ask a Keystone on another machine over plain http, where "
            "everybody on the way can read tokens and the password."
        ),
    ] = False
    user: Annotated[str, Meta(description="The service user that asks Keystone.")] = "dovetail"
    user_domain: Annotated[str, Meta(description="The domain of that user, by name.")] = "Default"
    project: Annotated[str, Meta(description="The project of that user.")] = "service"
    project_domain: Annotated[str, Meta(description="The domain of that project.")] = "Default"
    application_credential: Annotated[
        str | None,
        Meta(description="The id of an application credential to use instead of a user."),
    ] = None
    credential_file: Annotated[
        str | None,
        Meta(
            description="File with the user's password or the application credential's secret; "
            "read whenever Dovetail logs in."
        ),
    ] = None
    recheck_seconds: Annotated[
        Seconds, Meta(description="How long a token is good without asking again.")
    ] = 60.0
    refuse_seconds: Annotated[
        Seconds, Meta(description="How long a bad token is refused without asking again.")
    ] = 30.0
    cached_tokens: Annotated[int, Meta(ge=1, description="How many tokens are remembered.")] = (
        10_000
    )
    ca_file: Annotated[
        str | None, Meta(description="Certificates to trust Keystone by, instead of the system's.")
    ] = None
    timeout_seconds: Annotated[Seconds, Meta(description="How long Keystone may take.")] = 5.0


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every way in that is open."""

    ways: tuple[Way, ...] = ("tokens",)
    tokens: str | None = None
    oidc: OidcSettings = OidcSettings()
    keystone: KeystoneSettings = KeystoneSettings()


def is_protected(url: str) -> bool:
    """Whether nobody can listen in on the way, or nobody else is there."""
    scheme, host = scheme_and_host(url)
    on_loopback = host in {"localhost", "127.0.0.1", "::1"}
    return bool(host) and (scheme == "https" or (scheme == "http" and on_loopback))


def is_web_address(url: str) -> bool:
    scheme, host = scheme_and_host(url)
    return scheme in {"http", "https"} and bool(host)


def scheme_and_host(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.scheme, parts.hostname or ""
