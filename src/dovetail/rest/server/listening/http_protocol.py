"""HTTP/1.1 as uvicorn speaks it, with bounds on the head of a request and on readers that stall.

Without them, a caller that nobody knows could fill the memory with a header that never ends, hold
connections with heads that never come, or answers in memory that it does not read. The bound in
bytes is `h11_max_incomplete_event_size` of uvicorn's configuration, which uvicorn itself heeds in
its other parser only.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dovetail.rest.server.listening.joined_writes import JoinedWrites
from dovetail.rest.server.pieces.sending import STREAMS

HEAD_BYTES = 64 * 2**10
HEAD_SECONDS = 30.0
STALLED_SECONDS = 60.0
"""How long a reader may take for a piece of an answer; `pieces.sending` sends the next one then."""


class HeadTooLong(Exception):
    """Raised inside the parser, which gives up on the connection."""


class BoundedHttpProtocol(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    stalled_seconds = STALLED_SECONDS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = self.config.h11_max_incomplete_event_size or HEAD_BYTES
        self._reading_head, self._head_bytes, self._unfinished = False, 0, 0
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_no_head()
        self._read_on()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: answers that do not end by themselves are not waited for."""
        if self.cycle is not None and self.cycle.scope.get(STREAMS):
            self.transport.close()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        # Closing would wait for what is still to be sent: nobody reads it.
        self._stalled = self.loop.call_later(self.stalled_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._read_on()
        super().resume_writing()

    def _read_on(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # What the parser holds back of an unfinished header does not reach on_header.
        self._unfinished = self._unfinished + len(data) if self._reading_head else 0
        if self._unfinished > self._most and not self.transport.is_closing():
            self.send_400_response(f"The head of a request may have {self._most} bytes.")

    def on_message_begin(self) -> None:
        self._reading_head, self._head_bytes, self._unfinished = True, 0, 0
        self._expect_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._reading_head = False
        self._expect_no_head()
        self._heed_target()
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.transport = JoinedWrites(self.transport, self.loop)

    def _heed_target(self) -> None:
        """Where the target of a request has a host, that one counts (RFC 9112, 3.2.2): what is
        checked is then what is asked for."""
        host = None if self.url.startswith((b"/", b"*")) else host_of_target(self.url)
        if host is not None and any(name == b"host" for name, _ in self.headers):
            self.headers[:] = [each for each in self.headers if each[0] != b"host"]
            self.headers.append((b"host", host))

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self.transport.close)

    def _expect_no_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._most:
            raise HeadTooLong


def host_of_target(url: bytes) -> bytes | None:
    """The authority of a target in absolute form; None if it is in another."""
    _, slashes, rest = url.partition(b"://")
    if not slashes:
        return None
    authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
    return authority.rpartition(b"@")[2]
