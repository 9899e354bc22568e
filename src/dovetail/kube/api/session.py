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
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.metrics import CALLS
from dovetail.kube.api.port import ApiConflict, ApiError, ApiGone, ApiNotFound, ApiUnreachable

FIRST_ERROR = 400
UNAUTHORIZED = 401
TOO_MANY_REQUESTS = 429
ERRORS: dict[int, type[ApiError]] = {404: ApiNotFound, 409: ApiConflict, 410: ApiGone}


class ApiStatus(msgspec.Struct):
    """The body of a refusal: Kubernetes' `Status`, as far as it is read."""

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
    """`agent` is the value of the User-Agent header."""

    def __init__(
        self,
        pool: ConnectionPool,
        credentials: Credentials,
        agent: str,
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        self._pool = pool
        self._limits = limits
        self._credentials = credentials
        where = pool.address
        host = f"[{where.host}]" if ":" in where.host else where.host
        self._header_lines = (
            f"Host: {host}:{where.port}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        )

    def close(self) -> None:
        self._pool.close()

    async def call(self, request: ApiRequest) -> bytes:
        """The body of the answer; raises ApiError or ApiUnreachable."""
        refused = None
        for retries_left in range(self._limits.retries, -1, -1):
            header = await self._credentials.header(refused=refused)
            async with self._pool.exchange() as connection:
                body = await self._answer(connection, request, header)
                status, headers = connection.status, connection.headers
            if status < FIRST_ERROR:
                return body
            if status == UNAUTHORIZED and header and refused is None:
                refused = header
            elif status == TOO_MANY_REQUESTS and retries_left:
                await asyncio.sleep(
                    retry_after_seconds(headers, self._limits.longest_retry_seconds)
                )
            else:
                break
        raise refusal(status, body)

    async def stream(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
        """The lines of the answer, as they come."""
        connection = await self._pool.open()
        try:
            header = await self._credentials.header()
            await self._ask(connection, request, header)
            if connection.status == UNAUTHORIZED and header:
                connection.close()
                connection = await self._pool.open()
                header = await self._credentials.header(refused=header)
                await self._ask(connection, request, header)
            if connection.status >= FIRST_ERROR:
                async with answer_within(self._limits.answer_seconds):
                    body = await connection.body()
                raise refusal(connection.status, body)
            async with aclosing(lines(connection, self._limits)) as found:
                async for line in found:
                    yield line
        finally:
            connection.close()

    async def _answer(self, connection: HttpConnection, request: ApiRequest, header: str) -> bytes:
        started = time.perf_counter()
        result = "none"
        try:
            async with answer_within(self._limits.answer_seconds):
                await connection.ask(self._encoded(request, header))
                body = await connection.body()
            result = f"{connection.status // 100}xx"
        finally:
            CALLS.labels(request.verb, request.kind, result).observe(time.perf_counter() - started)
        return body

    async def _ask(self, connection: HttpConnection, request: ApiRequest, header: str) -> None:
        async with answer_within(self._limits.answer_seconds):
            await connection.ask(self._encoded(request, header))

    def _encoded(self, request: ApiRequest, header: str) -> bytes:
        query = f"?{urlencode(request.query)}" if request.query else ""
        target = f"{self._pool.address.prefix}{quote(request.path)}{query}"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._header_lines}"
        if header:
            head += f"Authorization: {header}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\n"
        return f"{head}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body


@asynccontextmanager
async def answer_within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ApiUnreachable(f"no answer within {seconds:.0f} s") from None


async def lines(
    connection: HttpConnection, limits: ClientLimits = DEFAULT_LIMITS
) -> AsyncGenerator[bytes, None]:
    """Whole lines of a streamed answer; the rest of one when the stream ends is dropped."""
    begun: list[bytes] = []
    size = 0
    async with aclosing(connection.chunks()) as chunks:
        while True:
            try:
                async with asyncio.timeout(limits.silence_seconds):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ApiUnreachable(f"no word for {limits.silence_seconds:.0f} s") from None
            ends, newline, rest = chunk.rpartition(b"\n")
            if newline:
                whole = b"".join([*begun, ends])
                begun, size = [], 0
                for line in whole.split(b"\n"):
                    yield line
            begun.append(rest)
            size += len(rest)
            if size > limits.line_bytes:
                raise ApiError(0, "Unreadable", f"a line of more than {limits.line_bytes} bytes")


def retry_after_seconds(headers: Mapping[bytes, bytes], longest: float) -> float:
    """As long as the server asks for, within reason."""
    written = headers.get(b"retry-after", b"1")
    return min(float(written), longest) if written.isdigit() else 1.0


def refusal(code: int, body: bytes) -> ApiError:
    """What the API said, or a proxy on the way to it that knows nothing of its ways."""
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except msgspec.DecodeError:
        status = ApiStatus(message=body[:200].decode(errors="replace"))
    code = status.code or code
    message = status.message or f"the API server answered {code}"
    return ERRORS.get(code, ApiError)(code, status.reason, message)
