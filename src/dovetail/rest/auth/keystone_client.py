"""Client of Keystone (Identity API v3): validates tokens, with a service token of our own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from dovetail.rest.auth.identity import AuthServiceUnreachable, CannotTell, Identity
from dovetail.rest.auth.outbound import Outbound, OutboundAnswer
from dovetail.rest.auth.settings import KeystoneSettings

RENEW_SECONDS = 60.0
"""The service token is renewed so long before it expires."""


class NamedEntity(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


class TokenBody(msgspec.Struct, frozen=True):
    """What we read of a token as Keystone shows it."""

    user: NamedEntity
    expires_at: datetime
    roles: tuple[NamedEntity, ...] = ()
    project: NamedEntity | None = None
    system: dict[str, Any] | None = None
    domain: NamedEntity | None = None

    def identity(self) -> Identity:
        return Identity(
            user=self.user.id,
            project=self.project.id if self.project else None,
            roles=frozenset(role.name for role in self.roles),
            wider_scope=bool(self.system or self.domain),
        )


class Validated(msgspec.Struct, frozen=True):
    """A good token: whose it is, and until when (Unix seconds)."""

    identity: Identity
    expires_at: float


class KeystoneClient:
    def __init__(
        self,
        settings: KeystoneSettings,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert settings.url is not None
        self._settings, self._wall, self._monotonic = settings, wall, monotonic
        self._address = f"{settings.url.rstrip('/').removesuffix('/v3')}/v3/auth/tokens"
        self._http = Outbound("Keystone", settings.ca_file, settings.timeout_seconds)
        self._service_token, self._good_until = "", float("-inf")
        """Until when, on the monotonic clock."""
        self._login = asyncio.Lock()

    async def validate(self, token: str) -> Validated | None:
        """None if Keystone does not know the token, or not any more. Raises CannotTell."""
        service_token = await self._logged_in()
        answer = await self._ask(token, service_token)
        if answer.status == 401:
            # Ours was revoked or expired early; a second one that is refused is no accident.
            answer = await self._ask(token, await self._logged_in(instead_of=service_token))
        if answer.status in {400, 404}:
            return None
        if answer.status != 200:
            raise CannotTell(f"Keystone answered the question about a token with {answer.status}.")
        body = token_body(answer)
        return Validated(body.identity(), body.expires_at.timestamp())

    async def close(self) -> None:
        await self._http.close()

    async def _ask(self, token: str, service_token: str) -> OutboundAnswer:
        headers = {"x-auth-token": service_token, "x-subject-token": token}
        return await self._http.ask("GET", f"{self._address}?nocatalog", headers=headers)

    async def _logged_in(self, instead_of: str | None = None) -> str:
        """The service token; those that find it missing at the same time share one login."""
        async with self._login:
            expires_soon = self._monotonic() > self._good_until - RENEW_SECONDS
            if expires_soon or self._service_token == instead_of:
                await self._log_in()
            return self._service_token

    async def _log_in(self) -> None:
        answer = await self._http.ask("POST", self._address, body=self._credentials())
        token = answer.headers.get("x-subject-token")
        if answer.status != 201 or not token:
            # Asking on and on would get our account locked.
            raise AuthServiceUnreachable(
                f"Keystone answered the login of Dovetail with {answer.status}."
            )
        self._service_token = token
        left = token_body(answer).expires_at.timestamp() - self._wall()
        self._good_until = self._monotonic() + left

    def _credentials(self) -> dict[str, Any]:
        chosen = self._settings
        assert chosen.credential_file is not None
        try:
            secret = Path(chosen.credential_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise CannotTell(f"The credential for Keystone cannot be read: {error}") from error
        if chosen.application_credential is not None:
            credential = {"id": chosen.application_credential, "secret": secret}
            method = "application_credential"
            return {"auth": {"identity": {"methods": [method], method: credential}}}
        user = {"name": chosen.user, "domain": {"name": chosen.user_domain}, "password": secret}
        project = {"name": chosen.project, "domain": {"name": chosen.project_domain}}
        return {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": project},
            }
        }


def token_body(answer: OutboundAnswer) -> TokenBody:
    try:
        body = msgspec.convert(answer.document.get("token"), TokenBody)
    except msgspec.ValidationError as error:
        raise CannotTell(f"Keystone's answer is not understood: {error}") from error
    if body.expires_at.tzinfo is None:
        raise CannotTell("Keystone tells an expiry without a time zone.")
    return body
