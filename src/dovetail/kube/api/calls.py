"""Calls of the API server: requests with credentials, refusals as exceptions, patience when asked.

A 401 is tried once more with credentials read anew, a 429 after as long as the server says. What
gets no answer is Unreachable, and is not tried again here: it may have been done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import quote, urlencode

import msgspec

from dovetail.kube.api.credentials import Credentials
from dovetail.kube.api.http1 import Connection, Pool
from dovetail.kube.api.port import ApiError, Conflict, Gone, NotFound, Unreachable
from dovetail.kube.runtime.metrics import CALLS

ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 150.0
"""Watches hear a bookmark about once a minute; one that hears nothing for so long is dead."""
LONGEST_LINE = 1 << 26
"""Far more than the largest object that etcd takes."""
TOO_MANY = 429
PATIENCE = 10
LONGEST_PAUSE = 30.0
BAD = 400
UNAUTHORIZED = 401
KINDS: dict[int, type[ApiError]] = {404: NotFound, 409: Conflict, 410: Gone}


class Status(msgspec.Struct):
    """How the API says no."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Request(msgspec.Struct, frozen=True):
    verb: str
    """For metrics, as Kubernetes names it."""
    kind: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"


class Calls:
    def __init__(self, pool: Pool, credentials: Credentials, agent: str) -> None:
        self._pool = pool
        self._credentials = credentials
        where = pool.address
        host = f"[{where.host}]" if ":" in where.host else where.host
        self._lines = (
            f"Host: {host}:{where.port}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        )

    def close(self) -> None:
        self._pool.close()

    async def call(self, request: Request) -> bytes:
        """The body of the answer; raises ApiError or Unreachable."""
        refused = None
        for patience in range(PATIENCE, -1, -1):
            header = await self._credentials.header(refused=refused)
            async with self._pool.exchange() as connection:
                body = await self._answered(connection, request, header)
                status, headers = connection.status, connection.headers
            if status < BAD:
                return body
            if status == UNAUTHORIZED and header and refused is None:
                refused = header
            elif status == TOO_MANY and patience:
                await asyncio.sleep(pause(headers))
            else:
                break
        raise refusal(status, body)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The lines of the answer, as they come."""
        connection = await self._pool.opened()
        try:
            header = await self._credentials.header()
            await self._asked(connection, request, header)
            if connection.status == UNAUTHORIZED and header:
                connection.close()
                connection = await self._pool.opened()
                header = await self._credentials.header(refused=header)
                await self._asked(connection, request, header)
            if connection.status >= BAD:
                async with in_time():
                    said = await connection.body()
                raise refusal(connection.status, said)
            async with aclosing(lines(connection)) as each:
                async for line in each:
                    yield line
        finally:
            connection.close()

    async def _answered(self, connection: Connection, request: Request, header: str) -> bytes:
        started = time.perf_counter()
        result = "none"
        try:
            async with in_time():
                await connection.ask(self._written(request, header))
                body = await connection.body()
            result = f"{connection.status // 100}xx"
        finally:
            CALLS.labels(request.verb, request.kind, result).observe(time.perf_counter() - started)
        return body

    async def _asked(self, connection: Connection, request: Request, header: str) -> None:
        async with in_time():
            await connection.ask(self._written(request, header))

    def _written(self, request: Request, header: str) -> bytes:
        query = f"?{urlencode(request.query)}" if request.query else ""
        target = f"{self._pool.address.prefix}{quote(request.path)}{query}"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._lines}"
        if header:
            head += f"Authorization: {header}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\n"
        return f"{head}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            yield
    except TimeoutError:
        raise Unreachable(f"no answer within {ANSWER_SECONDS:.0f} s") from None


async def lines(connection: Connection) -> AsyncGenerator[bytes, None]:
    """Whole ones; what is left of one when the stream ends is not told."""
    begun: list[bytes] = []
    size = 0
    async with aclosing(connection.chunks()) as chunks:
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise Unreachable(f"no word for {SILENCE_SECONDS:.0f} s") from None
            ends, newline, rest = chunk.rpartition(b"\n")
            if newline:
                whole = b"".join([*begun, ends])
                begun, size = [], 0
                for line in whole.split(b"\n"):
                    yield line
            begun.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise ApiError(0, "Unreadable", f"a line of more than {LONGEST_LINE} bytes")


def pause(headers: Mapping[bytes, bytes]) -> float:
    """As long as the server asks for, within reason."""
    asked = headers.get(b"retry-after", b"1")
    return min(float(asked), LONGEST_PAUSE) if asked.isdigit() else 1.0


def refusal(code: int, body: bytes) -> ApiError:
    """What the API said, or a proxy on the way to it that knows nothing of its ways."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        status = Status(message=body[:200].decode(errors="replace"))
    code = status.code or code
    message = status.message or f"the API server answered {code}"
    return KINDS.get(code, ApiError)(code, status.reason, message)
