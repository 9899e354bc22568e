"""Request and reply as the handlers of all doors see them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
import orjson

from dovetail.aio.thread_results import result_of
from dovetail.ledger.database.protocol import Operation, T
from dovetail.rest.server.pieces.sending import forgotten_when_sent
from dovetail.rest.server.pieces.writing import written_json
from dovetail.telemetry.phases import phase

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

    from dovetail.rest.auth.identity import Identity
    from dovetail.rest.server.backend import ServerBackend

JSON = "application/json"
Version = int
"""Each door counts its versions up from 0; Placement's are the minor number of 1.N."""


@lru_cache(maxsize=1024)
def http_date(second: int) -> str:
    """Of a moment in Unix seconds. Kept: most answers of a second say that it is now."""
    return formatdate(second, usegmt=True)


class Reply(msgspec.Struct):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    content_type: str | None = JSON
    cookies: tuple[str, ...] = ()
    """To be set, each with its attributes."""
    parts: AsyncIterator[bytes] | None = None
    """A long body, sent piece by piece instead of `body`; `headers` have its length, unless it is a
    stream of events."""

    @classmethod
    def in_pieces(
        cls,
        pieces: Sequence[bytes],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Reply:
        """With the body that these pieces are, in their order."""
        if len(pieces) == 1:
            return cls(status, pieces[0], {**(headers or {})}, content_type)
        length = {"content-length": str(sum(map(len, pieces)))}
        parts = forgotten_when_sent(pieces)
        return cls(status, b"", {**(headers or {}), **length}, content_type, parts=parts)

    async def whole(self) -> bytes:
        """The body in one piece; what was sent piece by piece can be had once."""
        if self.parts is None:
            return self.body
        return b"".join([part async for part in self.parts])

    @property
    def length(self) -> int:
        """Of a stream, nothing: it goes on until somebody ends it."""
        return len(self.body) if self.parts is None else int(self.headers.get("content-length", 0))

    @property
    def is_stream(self) -> bool:
        return self.parts is not None and "content-length" not in self.headers


class Query:
    """Parameters of the query string; keys may repeat. Made in time linear in its length."""

    def __init__(self, raw: bytes) -> None:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
        self._take(pairs)

    def _take(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.last = dict(pairs)
        self._values: dict[str, list[str]] = {}
        for key, value in pairs:
            self._values.setdefault(key, []).append(value)

    def __contains__(self, key: str) -> bool:
        return key in self.last

    def get(self, key: str) -> str | None:
        return self.last.get(key)

    def all(self, key: str) -> list[str]:
        return self._values.get(key, [])

    def without(self, *keys: str) -> Query:
        """The query less these parameters."""
        left = Query(b"")
        left._take([pair for pair in self.pairs if pair[0] not in keys])
        return left


class VersionedQuery(msgspec.Struct):
    """A query, and the version it is written in."""

    query: Query
    version: Version

    def since(self, minor: Version) -> bool:
        return self.version >= minor


class Call(VersionedQuery):
    """One request on its way through a handler."""

    request: Request
    backend: ServerBackend
    identity: Identity
    params: Mapping[str, str]
    ask: Callable[[str], Awaitable[Reply]]
    """What GET of another address (path and query) of this server answers the same caller."""
    admit: Callable[[Headers], Awaitable[Identity]]
    """Whose token these headers hold, found out as for any request. Raises HttpError."""
    count_stranger: Callable[[], Callable[[], None]]
    """Count an attempt of somebody unknown for their address, until what is returned is called.
    Raises HttpError: too many."""
    admit_again: Callable[[], Awaitable[None]]
    """Whether the caller may still have this answer, if that takes long. Raises HttpError."""
    body: bytes = b""
    dated_since: Version = 0
    """The first version whose answers say when what they show was last changed."""
    is_claiming: bool = False
    """Whether `service.claims` has the claim: it counts what becomes of it from then on."""

    async def read(self, operation: Operation[T]) -> T:
        with phase("read"):
            return await result_of(self.backend.ledger.read(operation))

    async def write(self, operation: Operation[T]) -> T:
        with phase("write"):
            return await result_of(self.backend.ledger.write(operation))

    def json(
        self, document: Any, status: int = 200, *, modified: int | None = None, **headers: str
    ) -> Reply:
        return Reply(status, orjson.dumps(document), {**headers, **self.cache_headers(modified)})

    async def long_json(self, document: Any, *, modified: int | None = None) -> Reply:
        """Of a document with members that are LongList or LongObject."""
        pieces = await written_json(document)
        return Reply.in_pieces(pieces, headers=self.cache_headers(modified))

    def empty(self, status: int = 204, *, modified: int | None = None, **headers: str) -> Reply:
        cached = {} if modified is None else self.cache_headers(modified)
        return Reply(status, b"", {**headers, **cached}, content_type=None)

    def cache_headers(self, modified: int | None = None) -> dict[str, str]:
        """`modified` is in Unix seconds; None is now."""
        if not self.since(self.dated_since):
            return {}
        return {
            "cache-control": "no-cache",
            "last-modified": http_date(int(time.time()) if modified is None else modified),
        }

    def url(self, path: str) -> str:
        """An absolute address on this server."""
        return f"{str(self.request.base_url).rstrip('/')}{path}"
