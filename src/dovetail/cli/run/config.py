"""Everything that can be set about a server, declared once.

A field of `Config` is a setting: `port` is `--port`, `DOVETAIL_PORT`, and `port` in the file. A
field that is itself a struct is a section: `max.body_bytes` is `--max-body-bytes`,
`DOVETAIL_MAX_BODY_BYTES`, and `body_bytes` under `[max]`. Flags, environment, file, the printed
configuration and the reference page all follow from here (see `layers.py` and `reference.py`).

To add a section, add a field whose type is a frozen struct with defaults. Each of its fields says
what it is for: `Annotated[int, Meta(description="...")]`. Names that hold `password` or `secret`
are masked wherever values are shown, and so are passwords in URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, inspect

from dovetail.rest.auth.settings import KeystoneSettings, OidcSettings, Way
from dovetail.rest.server.settings import Limits, RateSettings, TlsSettings

PREFIX = "DOVETAIL_"
SECRET = re.compile("password|secret")
PASSWORD_IN_URL = re.compile(r"(://[^/@:]*:)[^/]*@|([?&]password=)[^&]*")
MASK = "***"


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of `dovetail serve`."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 for any.")] = 8778
    workers: Annotated[
        int, Meta(ge=1, description="Server processes; each keeps a snapshot of its own.")
    ] = 1
    database: Annotated[
        str, Meta(description="`sqlite:///PATH` or `postgresql://USER@HOST/NAME`.")
    ] = "sqlite:///dovetail.db"
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
    max: Annotated[Limits, Meta(description="What one request may cost.")] = Limits()
    rate: Annotated[RateSettings, Meta(description="How often a caller may ask.")] = RateSettings()
    tls: Annotated[TlsSettings, Meta(description="Certificates.")] = TlsSettings()
    oidc: Annotated[OidcSettings, Meta(description="An OpenID Connect issuer.")] = OidcSettings()
    keystone: Annotated[KeystoneSettings, Meta(description="OpenStack Keystone.")] = (
        KeystoneSettings()
    )


class Setting(msgspec.Struct, frozen=True):
    """One thing that can be set, and its names."""

    path: tuple[str, ...]
    """The sections it is in, and its own name."""
    kind: inspect.Type
    type: Any
    default: Any
    description: str

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def argument(self) -> str:
        """As Python calls the option."""
        return "_".join(self.path)

    @property
    def flag(self) -> str:
        return "--" + self.argument.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.argument.upper()

    @property
    def is_switch(self) -> bool:
        return isinstance(self.kind, inspect.BoolType)

    def shown(self, value: Any) -> Any:
        """The value as it may be printed."""
        if value and SECRET.search(self.path[-1]):
            return MASK
        return without_passwords(value) if isinstance(value, str) else value


def without_passwords(text: str) -> str:
    return PASSWORD_IN_URL.sub(
        lambda found: f"{found[1]}{MASK}@" if found[1] else f"{found[2]}{MASK}", text
    )


@cache
def settings() -> tuple[Setting, ...]:
    return tuple(declared(Config))


def declared(struct: type[msgspec.Struct], under: tuple[str, ...] = ()) -> Iterator[Setting]:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    for field in described.fields:
        kind, description = bare(field.type)
        path = (*under, field.name)
        if isinstance(kind, inspect.StructType):
            yield from declared(kind.cls, path)
        else:
            yield Setting(path, kind, fields[field.name].type, field.default, description)


def bare(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """A type without its description, and the description."""
    description = ""
    while isinstance(kind, inspect.Metadata):
        description = (kind.extra_json_schema or {}).get("description", description)
        kind = kind.type
    return kind, description


def sections() -> dict[tuple[str, ...], list[Setting]]:
    """The settings by section, those of none first."""
    found: dict[tuple[str, ...], list[Setting]] = {(): []}
    for setting in settings():
        found.setdefault(setting.path[:-1], []).append(setting)
    return found
