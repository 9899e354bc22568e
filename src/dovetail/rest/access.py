"""Who is calling.

`noauth2` believes what the token says (Placement's convention for tests: USER or USER:PROJECT, user
`admin` has role admin, an x-roles header replaces the roles). `tokens` looks the token's hash up in
a file. Both give an Identity; what it may do is decided in policy.py.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Protocol

import msgspec
from starlette.datastructures import Headers

from dovetail.core.errors import DovetailError


class Identity(msgspec.Struct, frozen=True):
    user: str
    project: str | None
    roles: frozenset[str]
    system_scope: bool = False


NOBODY = Identity("", None, frozenset())


class Authenticator(Protocol):
    def identify(self, headers: Headers) -> Identity | None:
        """The caller, or None if nobody can be recognised."""
        ...


class NoAuth:
    """Believes every token."""

    def identify(self, headers: Headers) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            return None
        user, _, project = token.partition(":")
        roles = headers.get("x-roles")
        if roles is not None:
            held = frozenset(role.strip() for role in roles.split(","))
        else:
            held = frozenset({"admin"} if user == "admin" else ())
        return Identity(
            user=user,
            project=headers.get("x-project-id") or project or user,
            roles=held,
            system_scope=bool(headers.get("openstack-system-scope")),
        )


class TokenEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token of the file: its SHA-256, never the token itself."""

    user: str
    sha256: str
    roles: tuple[str, ...] = ()
    project: str | None = None


class TokenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[TokenEntry, ...]


class BadTokenFile(DovetailError):
    """A token file that cannot be used."""


class StaticTokens:
    """Knows the tokens of a TOML file by their hashes.

    Tokens are random and long (`dovetail token` makes them), so a plain hash cannot be guessed
    back, and how long a look-up takes tells nothing about them.
    """

    def __init__(self, path: Path) -> None:
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
            found = msgspec.convert(document, TokenFile)
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise BadTokenFile(f"token file {path}: {error}") from error
        self._identities = {
            entry.sha256.lower(): Identity(entry.user, entry.project, frozenset(entry.roles))
            for entry in found.tokens
        }

    def identify(self, headers: Headers) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            scheme, _, value = headers.get("authorization", "").partition(" ")
            token = value.strip() if scheme.lower() == "bearer" else None
        return self._identities.get(fingerprint(token)) if token else None


def fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
