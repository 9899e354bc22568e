"""The settings of `dovetail serve`; `serve`, `db` and their workers load them through `SERVER`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct
from dovetail.config.layers import Layers
from dovetail.ledger.database.settings import LedgerSettings
from dovetail.rest.auth.settings import KeystoneSettings, OidcSettings, Way
from dovetail.rest.server.settings import RateSettings, RequestLimits, TlsSettings
from dovetail.service.intents.settings import IntentSettings


class ServerSettings(SettingsStruct, frozen=True):
    """All that can be set about a server."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 for any.")] = 8778
    workers: Annotated[
        int, Meta(ge=1, description="Server processes; each keeps a snapshot of its own.")
    ] = 1
    database: Annotated[
        str, Meta(description="`sqlite:///PATH` or `postgresql://USER@HOST/NAME`.")
    ] = "sqlite:///dovetail.db"
    ledger: Annotated[
        LedgerSettings, Meta(description="How long the database may take; its connections.")
    ] = LedgerSettings()
    auth: Annotated[
        tuple[Way, ...],
        Meta(
            description="Who is believed: callers with a token of the token file (`tokens`), of an "
            "OpenID Connect issuer (`oidc`) or of Keystone (`keystone`), or every caller "
            "(`noauth2`, for tests, on loopback)."
        ),
    ] = ("tokens",)
    tokens: Annotated[
        str | None, Meta(description="Token file (TOML); `dovetail token` makes its entries.")
    ] = None
    noauth2_beyond_loopback: Annotated[
        bool, Meta(description="Needed to serve `noauth2` to other machines.")
    ] = False
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Names under which the server may be addressed with `noauth2`, beside "
            "localhost, loopback addresses and the address that is listened on; 421 for others."
        ),
    ] = ()
    policy: Annotated[
        Literal["legacy", "secure", "open"], Meta(description="Which roles may do what.")
    ] = "secure"
    cors_origin: Annotated[
        str | None, Meta(description="Origin whose pages may use the API from a browser.")
    ] = None
    metrics: Annotated[
        Literal["guarded", "public", "off"],
        Meta(
            description="`GET /metrics`: `guarded` asks the policy as for any other endpoint, "
            "`public` answers everybody, `off` nobody."
        ),
    ] = "guarded"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important lines that are logged."),
    ] = "info"
    demo: Annotated[bool, Meta(description="Fill an empty ledger with a demo fleet.")] = False
    audit_log: Annotated[
        str | None, Meta(description="File that gets a line for every write, done or refused.")
    ] = None
    typical: Annotated[
        str | None,
        Meta(
            description="File of typical requests, which some policies rank by; without it they "
            "are learned from what is asked."
        ),
    ] = None
    intents: Annotated[IntentSettings, Meta(description="Hardware intents over many clusters.")] = (
        IntentSettings()
    )
    max: Annotated[RequestLimits, Meta(description="What one request may cost.")] = RequestLimits()
    rate: Annotated[RateSettings, Meta(description="How often a caller may ask.")] = RateSettings()
    tls: Annotated[TlsSettings, Meta(description="Certificates.")] = TlsSettings()
    oidc: Annotated[OidcSettings, Meta(description="An OpenID Connect issuer.")] = OidcSettings()
    keystone: Annotated[KeystoneSettings, Meta(description="OpenStack Keystone.")] = (
        KeystoneSettings()
    )


SERVER = Layers(ServerSettings, "DOVETAIL_")
