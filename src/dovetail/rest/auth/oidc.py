"""OIDC authentication: bearer tokens are signed JWTs, checked here without asking their issuer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import orjson
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry
from joserfc.util import urlsafe_b64decode
from starlette.datastructures import Headers

from dovetail.core.bounded_cache import BoundedCache
from dovetail.rest.auth.identity import BEARER, BadToken, Identity, digest_of, token_of
from dovetail.rest.auth.issuer_keys import IssuerKeys, Key
from dovetail.rest.auth.outbound import Outbound
from dovetail.rest.auth.settings import OidcSettings

Json = dict[str, Any]
MOST_VERIFIED = 10_000


class VerifiedToken(msgspec.Struct, frozen=True):
    """A token that was found good: checking it anew would cost more than many a query."""

    identity: Identity
    edition: int
    """Of the keys it was checked with."""
    expires_at: float


class Signatures(JWSRegistry):
    """The algorithms that were chosen. The library's own also warns of `EdDSA`, with every token:
    its name is outdated, its signatures are not."""

    def __init__(self, names: Iterable[str]) -> None:
        # Issuers put members of their own into headers; those that matter are checked all the same.
        super().__init__(algorithms=list(names), strict_check_header=False)
        self._chosen = {name: self.algorithms[name] for name in names}

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in self._chosen:
            raise UnsupportedAlgorithmError(f"Algorithm of '{name}' is not accepted")
        return self._chosen[name]


class Oidc:
    challenges: tuple[str, ...] = (BEARER,)

    def __init__(
        self,
        settings: OidcSettings,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wall` is compared with what tokens say, `monotonic` measures intervals."""
        assert settings.issuer is not None
        self._settings, self._wall = settings, wall
        self._verified_tokens: BoundedCache[bytes, VerifiedToken] = BoundedCache(MOST_VERIFIED)
        self._issuer = Outbound("The issuer", settings.ca_file, settings.timeout_seconds)
        self._keys = IssuerKeys(settings, self._issuer, monotonic)
        self._signatures = Signatures(settings.algorithms)
        self._claims = JWTClaimsRegistry(
            now=lambda: int(wall()),
            leeway=settings.leeway_seconds,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "values": list(settings.audience)},
            exp={"essential": True},
        )

    async def identify(self, headers: Headers) -> Identity | None:
        token = token_of(headers)
        if token is None:
            return None
        digest = digest_of(token)
        seen = self._verified_tokens.get(digest)
        if seen is not None and await self._still_good(seen):
            return seen.identity
        claims = await self._checked(token)
        if claims is None:
            return None
        identity = identity_of(claims, self._settings)
        self._verified_tokens.put(
            digest, VerifiedToken(identity, self._keys.edition, claims["exp"])
        )
        return identity

    async def close(self) -> None:
        await self._keys.close()
        await self._issuer.close()

    async def _still_good(self, seen: VerifiedToken) -> bool:
        await self._keys.keep_fresh()
        return seen.edition == self._keys.edition and self._wall() < seen.expires_at

    async def _checked(self, token: str) -> Json | None:
        parts = unverified(token)
        if parts is None:
            return None
        header, claims = parts
        if header.get("alg") not in self._settings.algorithms or "crit" in header:
            raise BadToken("The token is signed in a way that is not accepted here.")
        # Before any key is looked for: tokens of others shall not make us ask the issuer.
        if claims.get("iss") != self._settings.issuer:
            raise BadToken("The token is of another issuer.")
        return self._verified(token, await self._keys.named(key_name(header)))

    def _verified(self, token: str, keys: Iterable[Key]) -> Json:
        for key in keys:
            try:
                decoded = jwt.decode(token, key, registry=self._signatures)
            except (JoseError, ValueError, TypeError):
                continue
            self._check(decoded.claims)
            return decoded.claims
        raise BadToken("The signature of the token is by none of the issuer's keys.")

    def _check(self, claims: Json) -> None:
        try:
            self._claims.validate(claims)
        except ExpiredTokenError as error:
            raise BadToken("The token has expired.") from error
        except JoseError as error:
            raise BadToken(f"The token is not good here: {error.description}.") from error


def unverified(token: str) -> tuple[Json, Json] | None:
    """Header and claims as the token states them; None if it is no signed JWT at all."""
    parts = token.encode("latin-1", "replace").split(b".")
    if len(parts) != 3:
        return None
    try:
        header, claims = (orjson.loads(urlsafe_b64decode(part)) for part in parts[:2])
    except ValueError:
        return None
    return (header, claims) if isinstance(header, dict) and isinstance(claims, dict) else None


def key_name(header: Json) -> str | None:
    name = header.get("kid")
    if name is not None and not isinstance(name, str):
        raise BadToken("The token names its key by something other than text.")
    return name


def identity_of(claims: Json, settings: OidcSettings) -> Identity:
    """The caller whom the claims of a token are about, as configured."""
    user = claim_at(claims, settings.user_claim)
    if not isinstance(user, str) or not user:
        raise BadToken(f"The token does not say who it is for ({settings.user_claim}).")
    project = claim_at(claims, settings.project_claim) if settings.project_claim else None
    return Identity(
        user=user,
        project=project if isinstance(project, str) else None,
        roles=roles_of(claims, settings),
    )


def roles_of(claims: Json, settings: OidcSettings) -> frozenset[str]:
    held = {role for name in settings.role_claims for role in words_in(claim_at(claims, name))}
    if not settings.role_names:
        return frozenset(held)
    pairs = (pair.split("=") for pair in settings.role_names)
    return frozenset(role for theirs, role in pairs if theirs in held)


def claim_at(claims: Json, name: str) -> Any:
    """The claim of that name; otherwise what the dots in the name lead to."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def words_in(value: Any) -> list[str]:
    """A list of strings, or one string with blanks between them: issuers do either."""
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
