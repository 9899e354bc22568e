"""Who we say we are: a header made from a token, a file that gets rotated or a command's output.

A header is kept until it expires or the server refuses it. One that cannot be had is no reason to
end: a command may fail while the network is down, a file may be missing while it is replaced. It is
told as ApiUnreachable, and the next call tries again.
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

from dovetail.kube.api.port import ApiUnreachable

FILE_SECONDS = 60.0
"""How long a token from a file is used before the file is read again."""
COMMAND_SECONDS = 60.0
MARGIN = 10.0
"""What expires within so many seconds is not used any more."""
PAUSE = 2.0
"""After a failure, all who ask within this time are told of it: commands can be slow to fail."""
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

    def __init__(self, issue: Issuer | None = None) -> None:
        self._issue = issue
        self._issued = IssuedHeader("", -math.inf)
        self._making = asyncio.Lock()
        self._failed = IssuedHeader("", -math.inf)

    async def header(self, *, refused: str | None = None) -> str:
        """The header's value, or "". One that was `refused` is made anew."""
        if self._issue is None:
            return ""
        async with self._making:
            now = asyncio.get_running_loop().time()
            if now >= self._issued.until or self._issued.header == refused:
                self._issued = await self._made(self._issue, now)
            return self._issued.header

    async def _made(self, issue: Issuer, now: float) -> IssuedHeader:
        if now < self._failed.until:
            raise ApiUnreachable(self._failed.header)
        try:
            return await issue()
        except (NoCredentials, OSError, ValueError) as error:
            why = f"no credentials: {error}"
            self._failed = IssuedHeader(why, asyncio.get_running_loop().time() + PAUSE)
            raise ApiUnreachable(why) from error


def bearer(token: str) -> str:
    return f"Bearer {token}"


def constant(header: str) -> Issuer:
    async def issue() -> IssuedHeader:
        return IssuedHeader(header)

    return issue


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def from_token_file(file: Path) -> Issuer:
    async def issue() -> IssuedHeader:
        token = (await asyncio.to_thread(file.read_text)).strip()
        if not token:
            raise NoCredentials(f"{file} is empty")
        return IssuedHeader(bearer(token), asyncio.get_running_loop().time() + FILE_SECONDS)

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

    async def issue(self) -> IssuedHeader:
        name = self.words[0]
        said = self._read(await self._output())
        if said.api_version != self.version or said.kind != "ExecCredential":
            raise NoCredentials(
                f"{name} printed a {said.kind} of {said.api_version},"
                f" an ExecCredential of {self.version} was expected"
            )
        if not said.status.token:
            raise NoCredentials(f"{name} printed no token; nothing else is understood here")
        until, expires = math.inf, said.status.expiration_timestamp
        if expires is not None:
            left = (expires - datetime.now(expires.tzinfo or UTC)).total_seconds()
            until = asyncio.get_running_loop().time() + left - MARGIN
        return IssuedHeader(bearer(said.status.token), until)

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
        told = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.words,
            env={**os.environ, **self.env, **told},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise NoCredentials(
                f"{self.words[0]} did not end within {COMMAND_SECONDS:.0f} s"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            words = complaint.decode(errors="replace").strip()[-500:]
            raise NoCredentials(f"{self.words[0]} ended with {process.returncode}: {words}")
        return output
