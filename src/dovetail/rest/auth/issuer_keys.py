"""JWKS cache: the public keys of an issuer, fetched when needed and anew when they rotate.

OIDC authentication asks it for the key that a token names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from dovetail.aio.single_flight import SingleFlight
from dovetail.rest.auth.identity import CannotTell
from dovetail.rest.auth.outbound import Outbound
from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.auth.settings import OidcSettings, is_protected

log = structlog.get_logger("dovetail.rest.auth")

Key = RSAKey | ECKey | OKPKey
DISCOVERY = "/.well-known/openid-configuration"
FRESH_SECONDS = 300.0
STALE_SECONDS = 24 * 3600.0
"""How long known keys are good while the issuer cannot be reached."""
LONGEST_WAIT_SECONDS = 1.0
"""How long a request waits for fresher keys than those that are there."""
PAUSE_SECONDS = 30.0
"""Between attempts to get fresher keys."""
FETCHES_PER_SECOND, FETCH_BURST = 0.1, 5
"""Anybody can name an unknown key; this bounds what that costs the issuer."""
SMALLEST_RSA_BITS = 2048


class IssuerKeys:
    def __init__(
        self, settings: OidcSettings, issuer: Outbound, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` measures intervals: it never steps back."""
        self._settings, self._issuer, self._clock = settings, issuer, clock
        self._keys: tuple[Key, ...] = ()
        self.edition = 0
        """Counts up whenever keys were fetched: what was checked with older ones may be void."""
        self._fetched = self._tried = float("-inf")
        self._flight: SingleFlight[Outbound, None] = SingleFlight()
        self._fetches = RateLimiter(FETCHES_PER_SECOND, FETCH_BURST, clock=clock)

    async def named(self, name: str | None) -> list[Key]:
        """The keys a token may be signed with: those of that name, or any if it names none."""
        await self.keep_fresh()
        found = self._matching(name)
        if not found:
            # A fetch that was under way may have begun before the key was published.
            joined = self._flight.is_under_way(self._issuer)
            await self._fetch()
            if joined and not self._matching(name):
                await self._fetch()
            found = self._matching(name)
        return found

    async def keep_fresh(self) -> None:
        """Fetch anew what is too old to rely on. Raises CannotTell if there is nothing else."""
        now = self._clock()
        if now - self._fetched > STALE_SECONDS:
            await self._fetch()
        elif now - self._fetched > FRESH_SECONDS and now - self._tried > PAUSE_SECONDS:
            await self._freshen()

    async def close(self) -> None:
        await self._flight.close()

    def _matching(self, name: str | None) -> list[Key]:
        return [key for key in self._keys if name is None or key.kid == name]

    async def _freshen(self) -> None:
        """Fetch anew, but let neither a slow issuer nor a missing one hold up requests."""
        self._tried = self._clock()
        try:
            await asyncio.wait_for(self._fetch(), LONGEST_WAIT_SECONDS)
        except (TimeoutError, CannotTell) as error:
            log.warning("keys of the issuer not refreshed", error=str(error) or "no answer yet")

    async def _fetch(self) -> None:
        """Fetch the keys; requests that want them at the same time share one fetch."""
        if not self._flight.is_under_way(self._issuer):
            wait = self._fetches.wait("")
            if wait:
                raise CannotTell("The keys of the issuer were asked for too often.", wait)
        await self._flight.call(self._issuer, self._take_in)

    async def _take_in(self) -> None:
        document = await self._issuer.get(await self._address())
        keys = tuple(usable(document.get("keys")))
        if not keys:
            raise CannotTell("The issuer publishes no keys that can be used.")
        self._keys, self._fetched = keys, self._clock()
        self.edition += 1

    async def _address(self) -> str:
        if self._settings.jwks_url is not None:
            return self._settings.jwks_url
        assert self._settings.issuer is not None
        found = await self._issuer.get(self._settings.issuer.rstrip("/") + DISCOVERY)
        if found.get("issuer") != self._settings.issuer:
            raise CannotTell("The discovery document is of another issuer.")
        address = found.get("jwks_uri")
        if not isinstance(address, str) or not is_protected(address):
            raise CannotTell("The discovery document does not say where the keys safely are.")
        return address


def usable(documents: Any) -> list[Key]:
    """Public keys, weak ones left out, and those of kinds that we do not know."""
    found = []
    for document in documents if isinstance(documents, list) else ():
        try:
            key = JWKRegistry.import_key(document)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, RSAKey) and key.raw_value.key_size < SMALLEST_RSA_BITS:
            continue
        if isinstance(key, Key):
            found.append(key)
    return found
