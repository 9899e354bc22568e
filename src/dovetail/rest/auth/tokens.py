"""Static token authentication: a TOML file knows them by their hashes.

The file is looked at with every request, so a token that was taken out of it is refused at once.
A file that cannot be read or used is told in the log, and the tokens read before stay good.
"""

from __future__ import annotations

import hashlib
import secrets
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
import structlog
from starlette.datastructures import Headers

from dovetail.core.errors import DovetailError
from dovetail.rest.auth.identity import BEARER, Identity, digest_of, token_of
from dovetail.rest.server.file_watch import FileWatch

log = structlog.get_logger("dovetail.rest.auth")


class TokenEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token of the file: its SHA-256, never the token itself."""

    user: Annotated[str, msgspec.Meta(min_length=1)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$")]
    roles: tuple[str, ...] = ()
    project: str | None = None


class TokenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[TokenEntry, ...] = ()


class BadTokenFile(DovetailError):
    """A token file that cannot be used."""


class StaticTokens:
    """Knows the tokens of a file.

    Tokens are found by a keyed hash whose key nobody outside this process knows, so how long a
    comparison takes tells nothing about the tokens or hashes that are there.
    """

    challenges: tuple[str, ...] = (BEARER,)

    def __init__(self, path: Path) -> None:
        self._path, self._watch = path, FileWatch(path)
        self._key = secrets.token_bytes(32)
        self._complaint = ""
        self._watch.changed()
        self._identities = self._read()

    async def identify(self, headers: Headers) -> Identity | None:
        token = token_of(headers)
        if token is None:
            return None
        if self._watch.changed():
            self._reread()
        return self._identities.get(self._blinded(fingerprint(token)))

    async def close(self) -> None:
        pass

    def _reread(self) -> None:
        try:
            self._identities, self._complaint = self._read(), ""
        except BadTokenFile as error:
            if str(error) != self._complaint:
                log.error("token file not taken in, the tokens read before stay", error=str(error))
            self._complaint = str(error)

    def _read(self) -> dict[bytes, Identity]:
        return {
            self._blinded(entry.sha256.lower()): Identity(
                entry.user, entry.project, frozenset(entry.roles)
            )
            for entry in entries(self._path)
        }

    def _blinded(self, sha256: str) -> bytes:
        return hashlib.blake2b(sha256.encode(), key=self._key, digest_size=32).digest()


def entries(path: Path) -> tuple[TokenEntry, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert(document, TokenFile).tokens
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise BadTokenFile(f"token file {path}: {error}") from error
    hashes = Counter(entry.sha256.lower() for entry in found)
    for entry in found:
        if hashes[entry.sha256.lower()] > 1:
            raise BadTokenFile(f"token file {path}: the token of {entry.user} is there twice")
    return found


def fingerprint(token: str) -> str:
    return digest_of(token).hex()
