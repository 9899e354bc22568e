"""Admission of callers: authentication and rate limit, which the application asks per request.

Who is not known yet pays first, by address: failed attempts to get in would otherwise cost us, and
Keystone, whatever strangers like. Callers that were let in before do not pay for strangers that
come from the same address, such as that of a proxy.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable

import structlog
from starlette.datastructures import Headers

from dovetail.core.bounded_cache import BoundedCache
from dovetail.rest.auth.identity import (
    Authenticator,
    BadToken,
    CannotTell,
    Identity,
    digest_of,
    token_of,
)
from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.server.errors import HttpError

log = structlog.get_logger("dovetail.rest.auth")

MOST_KNOWN = 10_000
IPV6_SITE_BITS = 64
"""Whoever has one IPv6 address has all that share these bits with it."""


class CallerAdmission:
    def __init__(self, authenticator: Authenticator, limiter: RateLimiter | None) -> None:
        self._authenticator = authenticator
        self._callers = limiter
        # Apart, so that a flood of strangers does not drive out what callers have used up.
        self._strangers = None if limiter is None else limiter.another()
        self._known: BoundedCache[bytes, bool] = BoundedCache(MOST_KNOWN)

    async def admit(self, headers: Headers, address: str | None) -> Identity:
        """The caller. Raises HttpError: unknown (401), too often (429), cannot tell (503)."""
        if self._callers is None or self._strangers is None:
            return await recognise(self._authenticator, headers)
        token = token_of(headers)
        digest = b"" if token is None else digest_of(token)
        stranger, site = self._known.get(digest) is None, site_of(address)
        if stranger:
            self._strangers.admit(site)
        identity = await self._recognised(headers, digest)
        if stranger:
            self._strangers.give_back(site)
            self._known.put(digest, True)
        self._callers.admit(identity.user)
        return identity

    def count_stranger(self, address: str | None) -> Callable[[], None]:
        """For what costs others something and needs no token; what is returned takes it back.
        Raises HttpError (429)."""
        strangers, site = self._strangers, site_of(address)
        if strangers is None:
            return lambda: None
        strangers.admit(site)
        return lambda: strangers.give_back(site)

    async def _recognised(self, headers: Headers, digest: bytes) -> Identity:
        try:
            return await recognise(self._authenticator, headers)
        except HttpError as error:
            if error.status == 401:
                self._known.drop(digest)
            raise


def site_of(address: str | None) -> str:
    """What is counted as one address."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), IPV6_SITE_BITS), strict=False))


async def recognise(authenticator: Authenticator, headers: Headers) -> Identity:
    """From the headers of a request to its caller, or to the answer that turns it away."""
    try:
        identity = await authenticator.identify(headers)
    except BadToken as error:
        raise refusal(authenticator, headers, str(error)) from error
    except CannotTell as error:
        # The reason may name files and addresses of ours, and the caller may be anybody.
        log.warning("token not checked", error=str(error))
        wait = str(max(1, math.ceil(error.retry_after)))
        told = "The token cannot be checked now."
        raise HttpError(503, told, headers={"retry-after": wait}) from error
    if identity is None:
        raise refusal(authenticator, headers)
    return identity


def refusal(authenticator: Authenticator, headers: Headers, reason: str = "") -> HttpError:
    """401. As RFC 6750 wants it, callers without a token are told how, but not of an error."""
    challenges = authenticator.challenges
    if token_of(headers) is not None:
        told = 'error="invalid_token"'
        if reason:
            told += f', error_description="{quotable(reason)}"'
        challenges = tuple(
            f"{challenge}, {told}" if challenge.startswith("Bearer") else challenge
            for challenge in challenges
        )
    return HttpError(401, reason, headers={"www-authenticate": ", ".join(challenges)})


def quotable(text: str) -> str:
    """The characters that RFC 6750 allows in an error description."""
    return "".join(
        letter if " " <= letter <= "~" and letter not in '"\\' else "'" for letter in text
    )
