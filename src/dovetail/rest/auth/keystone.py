"""Keystone authentication: caches of what Keystone said about tokens, good and bad.

A good token is asked about again once in a while, so that one that was revoked does not stay good.
While Keystone is down, those that were good before stay good until they expire.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

import structlog
from starlette.datastructures import Headers

from dovetail.aio.single_flight import SingleFlight
from dovetail.core.bounded_cache import BoundedCache
from dovetail.rest.auth.identity import (
    AuthServiceUnreachable,
    BadToken,
    CannotTell,
    Identity,
    digest_of,
    token_of,
)
from dovetail.rest.auth.keystone_client import KeystoneClient, Validated
from dovetail.rest.auth.outbound import CONNECTIONS
from dovetail.rest.auth.settings import KeystoneSettings

log = structlog.get_logger("dovetail.rest.auth")

LONGEST_TOKEN = 8192
STRANGERS_AT_ONCE = CONNECTIONS // 2
"""Tokens never seen before that Keystone is asked about at the same time: anybody can send some,
and those that are known have to be asked about again meanwhile."""
PAUSE_SECONDS = 5.0
"""So long Keystone is left alone after it did not answer: requests need not wait for it."""


class Keystone:
    def __init__(
        self,
        settings: KeystoneSettings,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wall` is compared with what tokens say, `monotonic` measures intervals: a wall clock
        that is set back must neither put off that a token is asked about again, nor keep Keystone
        from being asked at all."""
        self._settings, self._wall, self._monotonic = settings, wall, monotonic
        self._client = KeystoneClient(settings, wall, monotonic)
        # Apart, so that a flood of bad tokens does not drive out the good ones.
        self._good: BoundedCache[bytes, tuple[Validated, float]] = BoundedCache(
            settings.cached_tokens
        )
        self._bad: BoundedCache[bytes, float] = BoundedCache(settings.cached_tokens)
        self._flight: SingleFlight[bytes, Validated | None] = SingleFlight()
        self._strangers = asyncio.Semaphore(STRANGERS_AT_ONCE)
        self._down_until = float("-inf")
        self.challenges: tuple[str, ...] = (f'Keystone uri="{settings.url}"',)

    async def identify(self, headers: Headers) -> Identity | None:
        token = token_of(headers)
        if token is None:
            return None
        key = digest_of(token)
        now = self._monotonic()
        if now < (self._bad.get(key) or float("-inf")) or not may_be_sent(token):
            raise unknown()
        known, recheck = self._good.get(key) or (None, float("-inf"))
        if known is not None and self._wall() >= known.expires_at:
            self._good.drop(key)
            raise BadToken("The token has expired.")
        if known is None or now >= recheck:
            known = await self._asked(key, token, known)
        return known.identity

    async def close(self) -> None:
        await self._flight.close()
        await self._client.close()

    async def _asked(self, key: bytes, token: str, known: Validated | None) -> Validated:
        """What Keystone says, or if it says nothing, what it said before."""
        now = self._monotonic()
        try:
            if now < self._down_until:
                raise CannotTell("Keystone cannot be asked about the token.", PAUSE_SECONDS)
            validated = await self._shared(key, token, stranger=known is None)
        except CannotTell as error:
            if isinstance(error, AuthServiceUnreachable):
                self._down_until = now + PAUSE_SECONDS
            if known is None:
                raise
            log.warning("token not checked again, and still good", error=str(error))
            return known
        return self._remembered(key, validated)

    def _remembered(self, key: bytes, validated: Validated | None) -> Validated:
        now = self._monotonic()
        if validated is None or self._wall() >= validated.expires_at:
            self._good.drop(key)
            self._bad.put(key, now + self._settings.refuse_seconds)
            raise unknown()
        self._good.put(key, (validated, now + self._settings.recheck_seconds))
        return validated

    async def _shared(self, key: bytes, token: str, *, stranger: bool) -> Validated | None:
        """Ask once for all requests that bring the same token at the same time."""
        ask = self._in_turn if stranger else self._client.validate
        return await self._flight.call(key, partial(ask, token))

    async def _in_turn(self, token: str) -> Validated | None:
        try:
            await asyncio.wait_for(self._strangers.acquire(), self._settings.timeout_seconds)
        except TimeoutError as error:
            raise CannotTell("Too many tokens that were never seen wait to be checked.") from error
        try:
            return await self._client.validate(token)
        finally:
            self._strangers.release()


def may_be_sent(token: str) -> bool:
    """No token of Keystone is longer or holds anything that a header could not."""
    return len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable()


def unknown() -> BadToken:
    return BadToken("Keystone does not know the token: it has expired, was revoked or never was.")
