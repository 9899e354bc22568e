"""HTTP/1.1 client connections to one server, and their pool; the session sends requests over them.

They do as little as a scheduler's hundreds of calls a second allow: a general client took well over
a millisecond of CPU for a call. There are no redirects, proxies or compression: an API server needs
none of them from us.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from socket import IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL
from typing import cast

import httptools
import msgspec

from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import ApiUnreachable

MOST_BUFFERED_BYTES = 1 << 20
"""With more than this unread, the server is held up."""
FIRST_FINAL_STATUS = 200
"""Statuses below come ahead of the answer."""
KEEPALIVE = (
    (SOL_SOCKET, SO_KEEPALIVE, 1),
    (IPPROTO_TCP, TCP_KEEPIDLE, 20),
    (IPPROTO_TCP, TCP_KEEPINTVL, 5),
    (IPPROTO_TCP, TCP_KEEPCNT, 4),
)
"""A peer that went without a word is noticed after 40 seconds, in the quietest watch, too."""


class ServerAddress(msgspec.Struct, frozen=True):
    host: str
    port: int
    prefix: str = ""
    """What paths start with, if the API is not at the root."""
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """Whom the server's certificate is for, if that is not the host."""


class HttpConnection(asyncio.Protocol):
    """One connection, with one exchange at a time."""

    def __init__(self, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._head_size = 0
        self._has_head = self._keep_alive = False
        self._is_whole = True
        self.broken = ""
        """Why nothing more will come."""
        self.last_used = 0.0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    async def ask(self, request: bytes) -> None:
        """Send it and wait for status and headers."""
        self._has_head = self._is_whole = False
        self._head_size = 0
        self.headers = {}
        assert self._transport is not None
        self._transport.write(request)
        while not self._has_head:
            await self._wait()

    async def body(self) -> bytes:
        parts = []
        size = 0
        while not self._is_whole or self._chunks:
            if self._chunks:
                parts.append(self._take_chunks())
                size += len(parts[-1])
                if size > self._limits.body_bytes:
                    raise ApiUnreachable(f"an answer of more than {self._limits.body_bytes} bytes")
            else:
                await self._wait()
        return b"".join(parts)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes in."""
        while not self._is_whole or self._chunks:
            if self._chunks:
                yield self._take_chunks()
            else:
                await self._wait()

    @property
    def is_reusable(self) -> bool:
        """The whole answer was read, and another may follow."""
        return self._is_whole and self._keep_alive and not self._chunks and not self.broken

    def close(self) -> None:
        self.broken = self.broken or "closed here"
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self.broken:
            raise ApiUnreachable(self.broken)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take_chunks(self) -> bytes:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        if self._buffered > MOST_BUFFERED_BYTES and self._transport is not None:
            self._transport.resume_reading()
        self._buffered = 0
        return data

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        for option in KEEPALIVE:
            transport.get_extra_info("socket").setsockopt(*option)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.broken = f"not HTTP: {error.__context__ or error}"
        if not self._has_head:
            self._head_size += len(data)
            most = self._limits.head_bytes
            if self._head_size > most:
                self.broken = self.broken or f"headers of more than {most} bytes"
        if self.broken:
            self.close()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.broken = self.broken or f"the connection was lost: {exc or 'closed by the server'}"
        self._wake()

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._is_whole:
            # Such as a proxy's 408 on an idle connection. It must not answer the next request.
            raise RuntimeError("an answer that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        # 1xx only announces the answer.
        self._has_head = self.status >= FIRST_FINAL_STATUS
        if not self._has_head:
            self.headers = {}

    def on_body(self, data: bytes) -> None:
        self._chunks.append(data)
        before = self._buffered
        self._buffered += len(data)
        if before <= MOST_BUFFERED_BYTES < self._buffered:
            assert self._transport is not None
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._has_head:
            return
        self._is_whole = True
        # Asked later, it would answer for a next message.
        self._keep_alive = self._parser.should_keep_alive()


class ConnectionPool:
    """Connections to one server: at most so many calls at a time, and any number of streams."""

    def __init__(
        self, address: ServerAddress, limits: ClientLimits = DEFAULT_LIMITS, most_calls: int = 64
    ) -> None:
        self.address = address
        self._limits = limits
        self._turns = asyncio.Semaphore(most_calls)
        self._idle: list[HttpConnection] = []

    @asynccontextmanager
    async def exchange(self) -> AsyncIterator[HttpConnection]:
        """A connection for one call; kept for the next if the whole answer was read."""
        async with self._turns:
            connection = self._take_idle() or await self.open()
            try:
                yield connection
            finally:
                if connection.is_reusable:
                    connection.last_used = asyncio.get_running_loop().time()
                    self._idle.append(connection)
                else:
                    connection.close()

    async def open(self) -> HttpConnection:
        """A new connection, the caller's to close."""
        where = self.address
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: HttpConnection(self._limits),
                    where.host,
                    where.port,
                    ssl=where.tls,
                    server_hostname=where.server_name,
                )
        except (OSError, TimeoutError) as error:
            # Certificates that do not match are OSErrors, too.
            why = str(error) or "no answer"
            raise ApiUnreachable(f"{where.host}:{where.port}: {why}") from error
        return connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> HttpConnection | None:
        """The one used last; those that are too old go."""
        oldest = asyncio.get_running_loop().time() - self._limits.idle_seconds
        while self._idle:
            connection = self._idle.pop()
            if not connection.broken and connection.last_used > oldest:
                return connection
            connection.close()
        return None
