"""Authorization headers: from a token, a token file that gets rotated or an exec credential plugin.

The session asks for the header before each request. A header is kept until it expires or the server
refuses it. Credentials that cannot be had are no reason to end: a plugin may fail while the network
is down, a file may be missing while it is replaced. They are told as ApiUnreachable, and the next
call tries again.
"""

from __future__ import annotations

import asyncio
import math
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import ApiUnreachable

EXEC_CREDENTIAL_VERSIONS = tuple(
    f"client.authentication.k8s.io/{each}" for each in ("v1", "v1beta1")
)


class NoCredentials(Exception):
    """They cannot be had now."""


class IssuedHeader(msgspec.Struct, frozen=True):
    header: str
    until: float = math.inf
    """By the event loop's clock."""


Issuer = Callable[[], Awaitable[IssuedHeader]]


class Credentials:
    """Client certificates are not here: they are part of the connection."""

    def __init__(self, issuer: Issuer | None = None, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        self._issuer = issuer
        self._limits = limits
        self._issued = IssuedHeader("", -math.inf)
        self._issuing = asyncio.Lock()
        self._failure, self._failure_until = "", -math.inf

    async def header(self, *, refused: str | None = None) -> str:
        """The header's value, or "". One that was `refused` is made anew."""
        if self._issuer is None:
            return ""
        async with self._issuing:
            now = asyncio.get_running_loop().time()
            if now >= self._issued.until or self._issued.header == refused:
                self._issued = await self._issue(self._issuer, now)
            return self._issued.header

    async def _issue(self, issuer: Issuer, now: float) -> IssuedHeader:
        if now < self._failure_until:
            raise ApiUnreachable(self._failure)
        try:
            return await issuer()
        except (NoCredentials, OSError, ValueError) as error:
            self._failure = f"no credentials: {error}"
            now = asyncio.get_running_loop().time()
            self._failure_until = now + self._limits.failure_seconds
            raise ApiUnreachable(self._failure) from error


def bearer(token: str) -> str:
    return f"Bearer {token}"


def constant(header: str) -> Issuer:
    async def issue() -> IssuedHeader:
        return IssuedHeader(header)

    return issue


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def from_token_file(file: Path, limits: ClientLimits = DEFAULT_LIMITS) -> Issuer:
    async def issue() -> IssuedHeader:
        token = (await asyncio.to_thread(file.read_text)).strip()
        if not token:
            raise NoCredentials(f"{file} is empty")
        return IssuedHeader(
            bearer(token), asyncio.get_running_loop().time() + limits.token_file_seconds
        )

    return issue


class ExecCredentialStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, rename="camel"):
    """What a command prints."""

    api_version: str
    kind: str
    status: ExecCredentialStatus


class CredentialPlugin(msgspec.Struct, frozen=True):
    """A credential plugin, as EKS, GKE and AKS have them."""

    version: str
    words: Sequence[str]
    env: Mapping[str, str] = {}
    limits: ClientLimits = DEFAULT_LIMITS

    async def issue(self) -> IssuedHeader:
        name = self.words[0]
        printed = self._read(await self._output())
        if printed.api_version != self.version or printed.kind != "ExecCredential":
            raise NoCredentials(
                f"{name} printed a {printed.kind} of {printed.api_version},"
                f" an ExecCredential of {self.version} was expected"
            )
        if not printed.status.token:
            raise NoCredentials(f"{name} printed no token; nothing else is understood here")
        until, expires = math.inf, printed.status.expiration_timestamp
        if expires is not None:
            left = (expires - datetime.now(expires.tzinfo or UTC)).total_seconds()
            until = asyncio.get_running_loop().time() + left - self.limits.expiry_margin_seconds
        return IssuedHeader(bearer(printed.status.token), until)

    def _read(self, output: bytes) -> ExecCredential:
        try:
            return msgspec.json.decode(output, type=ExecCredential)
        except msgspec.DecodeError as error:
            # Never the output itself: there may be a token in it.
            raise NoCredentials(f"{self.words[0]} printed no ExecCredential: {error}") from error

    async def _output(self) -> bytes:
        info = {
            "apiVersion": self.version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        variables = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.words,
            env={**os.environ, **self.env, **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            async with asyncio.timeout(self.limits.plugin_seconds):
                output, errors = await process.communicate()
        except TimeoutError:
            raise NoCredentials(
                f"{self.words[0]} did not end within {self.limits.plugin_seconds:.0f} s"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            words = errors.decode(errors="replace").strip()[-500:]
            raise NoCredentials(f"{self.words[0]} ended with {process.returncode}: {words}")
        return output
