"""Responses of long answers: sent piece by piece, each forgotten once it is sent.

The length is known beforehand, so an answer that breaks off is told from one that ends. A reader
that is slow is waited for between pieces; one that does not read at all is cut off by
`http_protocol`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dovetail.aio.pace import Pace

STREAMS = "dovetail.streams"
"""In the scope of a request whose answer does not end by itself: a server that stops cuts it."""


class PiecewiseResponse(Response):
    def __init__(
        self, parts: AsyncIterator[bytes], status: int, headers: Mapping[str, str]
    ) -> None:
        """`headers` have the content-length."""
        super().__init__(None, status, headers)
        self._parts = parts

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        pace = Pace()
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await pace.give_way()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class StreamResponse(Response):
    """Events as they come, until there are no more, or nobody listens."""

    def __init__(
        self, parts: AsyncIterator[bytes], status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(None, status, headers)
        del self.headers["content-length"]
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STREAMS] = True
        sending = asyncio.create_task(self._send(send))
        listening = asyncio.create_task(gone(receive))
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            listening.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def gone(receive: Receive) -> None:
    """Until the reader is."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def forgotten_when_sent(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    left = deque(pieces)
    while left:
        yield left.popleft()
