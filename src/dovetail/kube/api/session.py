"""Session with the API server: requests with credentials, retries and refusals as exceptions.

`client.py` sends its requests through one. A 401 is tried once more with credentials read anew, a
429 after as long as the server says. A request without an answer raises ApiUnreachable and is not
tried again here: it may have been done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import quote, urlencode

import msgspec

from dovetail.kube.api.credentials import Credentials
from dovetail.kube.api.http1 import ConnectionPool, HttpConnection
from dovetail.kube.api.metrics import CALLS
from dovetail.kube.api.port import ApiConflict, ApiError, ApiGone, ApiNotFound, ApiUnreachable

ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 150.0
"""Watches hear a bookmark about once a minute; one that hears nothing for so long is dead."""
LONGEST_LINE = 1 << 26
"""Far more than the largest object that etcd takes."""
TOO_MANY = 429
PATIENCE = 10
LONGEST_PAUSE = 30.0
FIRST_ERROR = 400
UNAUTHORIZED = 401
ERRORS: dict[int, type[ApiError]] = {404: ApiNotFound, 409: ApiConflict, 410: ApiGone}


class ApiStatus(msgspec.Struct):
    """How the API says no."""

    code: int = 0
    reason: str = ""
    message: str = ""


class ApiRequest(msgspec.Struct, frozen=True):
    verb: str
    """For metrics, as Kubernetes names it."""
    kind: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"


class ApiSession:
    def __init__(self, pool: ConnectionPool, credentials: Credentials, agent: str) -> None:
        self._pool = pool
        self._credentials = credentials
        where = pool.address
        host = f"[{where.host}]" if ":" in where.host else where.host
        self._lines = (
            f"Host: {host}:{where.port}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        )

    def close(self) -> None:
        self._pool.close()

    async def call(self, request: ApiRequest) -> bytes:
        """The body of the answer; raises ApiError or ApiUnreachable."""
        refused = None
        for patience in range(PATIENCE, -1, -1):
            header = await self._credentials.header(refused=refused)
            async with self._pool.exchange() as connection:
                body = await self._answered(connection, request, header)
                status, headers = connection.status, connection.headers
            if status < FIRST_ERROR:
                return body
            if status == UNAUTHORIZED and header and refused is None:
                refused = header
            elif status == TOO_MANY and patience:
                await asyncio.sleep(retry_after_seconds(headers))
            else:
                break
        raise refusal(status, body)

    async def stream(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
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
            if connection.status >= FIRST_ERROR:
                async with answering_in_time():
                    said = await connection.body()
                raise refusal(connection.status, said)
            async with aclosing(lines(connection)) as each:
                async for line in each:
                    yield line
        finally:
            connection.close()

    async def _answered(
        self, connection: HttpConnection, request: ApiRequest, header: str
    ) -> bytes:
        started = time.perf_counter()
        result = "none"
        try:
            async with answering_in_time():
                await connection.ask(self._written(request, header))
                body = await connection.body()
            result = f"{connection.status // 100}xx"
        finally:
            CALLS.labels(request.verb, request.kind, result).observe(time.perf_counter() - started)
        return body

    async def _asked(self, connection: HttpConnection, request: ApiRequest, header: str) -> None:
        async with answering_in_time():
            await connection.ask(self._written(request, header))

    def _written(self, request: ApiRequest, header: str) -> bytes:
        query = f"?{urlencode(request.query)}" if request.query else ""
        target = f"{self._pool.address.prefix}{quote(request.path)}{query}"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._lines}"
        if header:
            head += f"Authorization: {header}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\n"
        return f"{head}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body


@asynccontextmanager
async def answering_in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            yield
    except TimeoutError:
        raise ApiUnreachable(f"no answer within {ANSWER_SECONDS:.0f} s") from None


async def lines(connection: HttpConnection) -> AsyncGenerator[bytes, None]:
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
                raise ApiUnreachable(f"no word for {SILENCE_SECONDS:.0f} s") from None
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


def retry_after_seconds(headers: Mapping[bytes, bytes]) -> float:
    """As long as the server asks for, within reason."""
    asked = headers.get(b"retry-after", b"1")
    return min(float(asked), LONGEST_PAUSE) if asked.isdigit() else 1.0


def refusal(code: int, body: bytes) -> ApiError:
    """What the API said, or a proxy on the way to it that knows nothing of its ways."""
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except msgspec.DecodeError:
        status = ApiStatus(message=body[:200].decode(errors="replace"))
    code = status.code or code
    message = status.message or f"the API server answered {code}"
    return ERRORS.get(code, ApiError)(code, status.reason, message)
