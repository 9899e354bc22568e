"""Identity of a caller, and the port that every way of authentication implements."""

from __future__ import annotations

import hashlib
from typing import Protocol

import msgspec
from starlette.datastructures import Headers

from dovetail.core.errors import DovetailError

BEARER = 'Bearer realm="dovetail"'


class Identity(msgspec.Struct, frozen=True):
    user: str
    project: str | None
    roles: frozenset[str]
    wider_scope: bool = False
    """The roles are held in a system or a domain of Keystone, not in a project."""


NOBODY = Identity("", None, frozenset())


class BadToken(DovetailError):
    """A token that this way in can judge, and that is not good."""


class CannotTell(DovetailError):
    """Whether a token is good cannot be found out now."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AuthServiceUnreachable(CannotTell):
    """The service that could tell is not there for us: better to leave it alone for a while."""


class Authenticator(Protocol):
    challenges: tuple[str, ...]
    """How callers may make themselves known, as WWW-Authenticate tells it."""

    async def identify(self, headers: Headers) -> Identity | None:
        """The caller, or None if this way in does not know it. Raises BadToken and CannotTell."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def digest_of(token: str) -> bytes:
    """What a token is remembered by, so that no memory holds the token itself."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def token_of(headers: Headers) -> str | None:
    """The token sent as `X-Auth-Token` or as `Authorization: Bearer`."""
    token = headers.get("x-auth-token")
    if not token:
        scheme, _, value = headers.get("authorization", "").partition(" ")
        token = value.strip() if scheme.lower() == "bearer" else None
    return token or None
