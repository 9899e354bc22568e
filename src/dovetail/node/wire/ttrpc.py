"""ttrpc, the small RPC of containerd, over one socket that both sides share.

The socket carries frames: four bytes for the number of a connection, four for the length. On each
connection there are messages: four bytes for the length, four for the number of the call, one for
the kind and one for flags. NRI uses two connections: the runtime calls on one, we on the other.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from enum import IntEnum
from itertools import count
from typing import Annotated

import grpc
import structlog

from dovetail.core.errors import DovetailError
from dovetail.wire.codec import BadMessage, Message, decode, encode
from dovetail.wire.rpc import A, Method, Q, Refused

LOG = structlog.get_logger("dovetail.node.ttrpc")

FRAME = struct.Struct(">II")
HEADER = struct.Struct(">IIBB")
LARGEST_MESSAGE_BYTES = 4 * 2**20
"""Bytes of a message; a frame may have the header in addition."""


class Kind(IntEnum):
    REQUEST = 1
    RESPONSE = 2


class Request(Message):
    service: Annotated[str, 1] = ""
    method: Annotated[str, 2] = ""
    payload: Annotated[bytes, 3] = b""
    timeout_nano: Annotated[int, 4] = 0


class Status(Message):
    code: Annotated[int, 1] = 0
    message: Annotated[str, 2] = ""


class Response(Message):
    status: Annotated[Status | None, 1] = None
    payload: Annotated[bytes, 2] = b""


class Closed(DovetailError):
    """The other side went, or said something that is not ttrpc."""


class CallFailed(DovetailError):
    """The other side answered with an error, or not in time."""


Serve = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a call of a method, by its name; raises Refused."""


class Link:
    """One socket: we call on the connection `ours`, the other side on others."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ours: int, serve: Serve
    ) -> None:
        self._reader, self._writer, self._ours, self._serve = reader, writer, ours, serve
        self._numbers = count(1, 2)
        """Those who call use odd numbers."""
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the socket is closed; raises Closed."""
        held: dict[int, bytearray] = {}
        try:
            while True:
                number, data = await self._frame()
                buffer = held.setdefault(number, bytearray())
                buffer += data
                while message := _message(buffer):
                    self._take(number, *message)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Closed(f"the other side closed the socket: {error}") from None
        except BadMessage as error:
            raise Closed(f"what came is not ttrpc: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        self._writer.close()
        for task in self._answering:
            task.cancel()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(CallFailed("the connection was closed"))

    async def call(self, method: Method[Q, A], question: Q, deadline: float) -> A:
        """Raises CallFailed; `deadline` in seconds."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        request = Request(
            service=method.service,
            method=method.name,
            payload=encode(question),
            timeout_nano=int(deadline * 1e9),
        )
        try:
            self._send(self._ours, number, Kind.REQUEST, encode(request))
            response = await asyncio.wait_for(answer, deadline)
            if response.status and response.status.code:
                raise CallFailed(f"{method.name}: {response.status.message}")
            return decode(method.answer, response.payload)
        except TimeoutError:
            raise CallFailed(f"{method.name}: no answer within {deadline:g} s") from None
        except BadMessage as error:
            raise CallFailed(f"{method.name}: {error}") from None
        finally:
            del self._waiting[number]

    async def _frame(self) -> tuple[int, bytes]:
        number, length = FRAME.unpack(await self._reader.readexactly(FRAME.size))
        if length > LARGEST_MESSAGE_BYTES + HEADER.size:
            raise BadMessage(f"a frame of {length} bytes")
        return number, await self._reader.readexactly(length)

    def _take(self, connection: int, number: int, kind: int, data: bytes) -> None:
        if kind == Kind.REQUEST:
            task = asyncio.create_task(self._answer(connection, number, decode(Request, data)))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif kind == Kind.RESPONSE:
            waiting = self._waiting.get(number)
            # One that is not waited for any longer came too late.
            if waiting and not waiting.done():
                waiting.set_result(decode(Response, data))
        else:
            raise BadMessage(f"a message of kind {kind}")

    async def _answer(self, connection: int, number: int, request: Request) -> None:
        try:
            answer = Response(payload=await self._serve(request.method, request.payload))
        except Refused as error:
            answer = _failed(error.code, error.words)
        except BadMessage as error:
            answer = _failed(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:
            LOG.exception("failed", method=request.method)
            answer = _failed(grpc.StatusCode.INTERNAL, f"{request.method} failed: {error!r}")
        self._send(connection, number, Kind.RESPONSE, encode(answer))

    def _send(self, connection: int, number: int, kind: Kind, data: bytes) -> None:
        if len(data) > LARGEST_MESSAGE_BYTES:
            raise CallFailed(
                f"a message of {len(data)} bytes, where {LARGEST_MESSAGE_BYTES} are allowed"
            )
        # In a frame each: readers in Go want the header to end where a frame does.
        for part in (HEADER.pack(len(data), number, kind, 0), data):
            self._writer.write(FRAME.pack(connection, len(part)) + part)


def _failed(code: grpc.StatusCode, words: str) -> Response:
    return Response(status=Status(code=code.value[0], message=words))


def _message(buffer: bytearray) -> tuple[int, int, bytes] | None:
    """Taken from the front of the buffer if it is complete: number, kind, data."""
    if len(buffer) < HEADER.size:
        return None
    length, number, kind, _ = HEADER.unpack_from(buffer)
    if length > LARGEST_MESSAGE_BYTES:
        raise BadMessage(f"a message of {length} bytes")
    end = HEADER.size + length
    if len(buffer) < end:
        return None
    data = bytes(buffer[HEADER.size : end])
    del buffer[:end]
    return number, kind, data
