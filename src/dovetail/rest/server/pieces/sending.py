"""Responses of long answers: sent piece by piece, each forgotten once it is sent.

The length is known beforehand, so an answer that breaks off is told from one that ends. A reader
that is slow is waited for between pieces; one that does not read at all is cut off by
`http_protocol`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dovetail.aio.pace import Pace


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


async def forgotten_when_sent(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    left = deque(pieces)
    while left:
        yield left.popleft()
