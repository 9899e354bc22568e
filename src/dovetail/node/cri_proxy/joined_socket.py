"""Back-pressure between two joined sockets: either is read only as fast as the other takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class JoinedSocket(asyncio.Protocol):
    """Gives what it hears to `took`, and tells when it is `lost`."""

    def __init__(self, took: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._took, self._lost = took, lost
        self._other: JoinedSocket = self
        self._transport: asyncio.Transport | None = None
        self._full = False
        """Whether it takes less than it is given."""
        self._closed = False

    def join(self, other: JoinedSocket) -> None:
        self._other, other._other = other, self

    @property
    def gone(self) -> bool:
        """Whether there is no connection: not any more, or not yet."""
        return self._transport is None

    def listen(self) -> None:
        """If the other side takes what is heard here."""
        if self._transport and not self._transport.is_closing():
            if self._other._transport and not self._other._full:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def write(self, waiting: list[bytes]) -> None:
        """Taken out if there is a connection; else it waits on."""
        if waiting and self._transport:
            data = b"".join(waiting)
            waiting.clear()
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """After what was written."""
        self._closed = True
        if self._transport:
            self._transport.close()

    def abort(self) -> None:
        self._closed = True
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._closed:
            # The other side went while this one was on its way.
            transport.abort()
        self.listen()

    def data_received(self, data: bytes) -> None:
        self._took(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self._lost()

    def pause_writing(self) -> None:
        self._full = True
        self._other.listen()

    def resume_writing(self) -> None:
        self._full = False
        self._other.listen()
