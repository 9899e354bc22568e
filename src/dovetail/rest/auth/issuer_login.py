"""Client of an OpenID Connect issuer at which people sign in: codes and refresh tokens to tokens.

The console's login asks it. What the issuer says of itself is kept for five minutes, and asked for
no more often than its keys are, however many begin to sign in.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import structlog

from dovetail.aio.single_flight import SingleFlight
from dovetail.core.bounded_cache import BoundedCache
from dovetail.rest.auth.identity import CannotTell, digest_of
from dovetail.rest.auth.issuer_keys import (
    DISCOVERY,
    FETCH_BURST,
    FETCHES_PER_SECOND,
    FRESH_SECONDS,
)
from dovetail.rest.auth.outbound import Outbound
from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.auth.settings import OidcSettings, is_protected
from dovetail.rest.server.errors import HttpError

log = structlog.get_logger("dovetail.rest.auth")

Json = dict[str, Any]
GRACE_SECONDS = 20.0
"""How long whoever still has a refresh token that was used gets what it was worth: other tabs."""
MOST_RENEWED = 10_000


class IssuerEndpoints(msgspec.Struct, frozen=True):
    authorization: str
    token: str


class Renewed(msgspec.Struct, frozen=True):
    """What a refresh token was worth."""

    tokens: Json | None
    """None: the issuer refused it, which it will again."""


class IssuerLogin:
    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` measures intervals: it never steps back."""
        self._settings, self._clock = settings, clock
        self._http: Outbound | None = None
        self._endpoints: IssuerEndpoints | None = None
        self._fetched = float("-inf")
        self._fetches = RateLimiter(FETCHES_PER_SECOND, FETCH_BURST, clock=clock)
        self._discoveries: SingleFlight[str, IssuerEndpoints] = SingleFlight()
        self._renewals: SingleFlight[bytes, Json | None] = SingleFlight()
        self._renewed: BoundedCache[bytes, Renewed] = BoundedCache(MOST_RENEWED)

    async def endpoints(self) -> IssuerEndpoints:
        """Where the issuer says that people and codes go. Raises HttpError."""
        if self._endpoints is not None and self._clock() - self._fetched < FRESH_SECONDS:
            return self._endpoints
        return await self._discoveries.call("", self._discovered)

    async def tokens_for_code(self, form: Mapping[str, str]) -> Json:
        """What a code is worth. Raises HttpError."""
        found = await self._tokens({"grant_type": "authorization_code", **form})
        if "error" in found:
            raise HttpError(403, f"The issuer did not take the code: {found['error']}.")
        return found

    async def renewed(self, refresh: str) -> Json | None:
        """What a refresh token is worth, None if nothing. Raises HttpError if that cannot be asked.

        Issuers may take each but once. Requests that come with the same one share one renewal, and
        those that come soon after with the old one get what it was worth.
        """
        digest = digest_of(refresh)
        known = self._renewed.get(digest)
        if known is not None:
            return known.tokens
        return await self._renewals.call(digest, lambda: self._renew(refresh, digest))

    async def close(self) -> None:
        await self._discoveries.close()
        await self._renewals.close()
        if self._http is not None:
            await self._http.close()

    async def _renew(self, refresh: str, digest: bytes) -> Json | None:
        found = await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh})
        tokens = None if "error" in found else found
        self._renewed.put(digest, Renewed(tokens))
        if tokens is None:
            log.info("session not renewed", error=str(found["error"]))
        else:
            # No memory holds tokens for longer than somebody may ask for them.
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._renewed.drop, digest)
        return tokens

    async def _discovered(self) -> IssuerEndpoints:
        wait = self._fetches.wait("")
        if wait:
            raise HttpError(
                503, "The issuer was asked too often.", headers={"retry-after": str(int(wait) + 1)}
            )
        assert self._settings.issuer is not None
        try:
            found = await self._outbound().get(self._settings.issuer.rstrip("/") + DISCOVERY)
        except CannotTell as error:
            raise HttpError(503, "The issuer cannot be reached.") from error
        if found.get("issuer") != self._settings.issuer:
            raise HttpError(503, "The discovery document is of another issuer.")
        places = [found.get(name) for name in ("authorization_endpoint", "token_endpoint")]
        if not all(isinstance(each, str) and is_protected(each) for each in places):
            raise HttpError(503, "The issuer does not say where to sign in.")
        self._endpoints, self._fetched = IssuerEndpoints(*map(str, places)), self._clock()
        return self._endpoints

    async def _tokens(self, form: Mapping[str, str]) -> Json:
        """What the token endpoint answers; of a refusal, an object with `error`."""
        assert self._settings.client_id is not None
        place = (await self.endpoints()).token
        proof = await asyncio.to_thread(client_proof, self._settings)
        sent = {**form, "client_id": self._settings.client_id}
        try:
            answer = await self._outbound().ask("POST", place, form=sent, headers=proof)
        except CannotTell as error:
            raise HttpError(503, "The issuer cannot be reached.") from error
        if answer.status >= 500:
            raise HttpError(503, f"The issuer answered with {answer.status}.")
        if answer.status != 200:
            return {"error": answer.document.get("error")}
        return answer.document

    def _outbound(self) -> Outbound:
        """One client for all: each would read the certificates of the machine anew."""
        if self._http is None:
            chosen = self._settings
            self._http = Outbound("The issuer", chosen.ca_file, chosen.timeout_seconds)
        return self._http


def client_proof(settings: OidcSettings) -> dict[str, str]:
    """HTTP basic authentication (RFC 6749, 2.3.1), where the client has a secret."""
    if settings.client_secret_file is None or settings.client_id is None:
        return {}
    try:
        secret = Path(settings.client_secret_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise HttpError(503, "The client's secret cannot be read.") from error
    pair = f"{quote(settings.client_id, safe='')}:{quote(secret, safe='')}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
