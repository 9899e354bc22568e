"""Writes joined: the head of an answer goes with its body, in one call of the operating system.

uvicorn writes head and body one after the other, and the loop sends each at once: twice the work in
the kernel, and clients wake up twice. A response cycle writes to this instead of its transport. The
head waits for the body until the next turn of the loop, which is when anything else may happen;
answers that come piece by piece are not held up.
"""

from __future__ import annotations

import asyncio

LONGEST_JOINED = 2**16
"""Bodies that are longer are sent by themselves: copying them would cost more than a call."""


class JoinedWrites(asyncio.Transport):
    """As much of a transport as a response cycle asks for."""

    __slots__ = ("_head", "_is_first", "_loop", "_transport", "_turn")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._head = b""
        self._is_first = True
        self._turn: asyncio.Handle | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_first:
            self._is_first, self._head = False, bytes(data)
            self._turn = self._loop.call_soon(self._flush)
        elif self._head and len(data) <= LONGEST_JOINED:
            self._head += data
            self._flush()
        else:
            self._flush()
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
            head, self._head = self._head, b""
            self._transport.write(head)
