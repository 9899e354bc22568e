"""One proxied connection: a client, the runtime behind it, and the calls between that are held.

If one of them ends, so does the other: the client sees what it would see of the runtime itself, and
comes back by its own back-off.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import structlog

from dovetail.node.common.metrics import AGENT_METRICS, SECONDS
from dovetail.node.cri_proxy import envelope
from dovetail.node.cri_proxy.frames import LAST_STREAM, BadFrames, ErrorCode
from dovetail.node.cri_proxy.joined_socket import JoinedSocket
from dovetail.node.cri_proxy.relay import Relay
from dovetail.node.wire import cri
from dovetail.wire.rpc import Refused

PROXIED = AGENT_METRICS.histogram(
    "proxied_call_seconds",
    "Calls that went through to the runtime, by kind: passed, injected or refused.",
    SECONDS,
    "kind",
)
KINDS = {kind: PROXIED.labels(kind) for kind in ("passed", "injected", "refused")}

LOG = structlog.get_logger("dovetail.node.runtime")

Send = Callable[[bytes], Awaitable[bytes]]
"""Sends a question to the runtime and gives its answer; cancelled if the call ends without one."""

Handler = Callable[[bytes, Send], Awaitable[None]]
"""Takes a question and sends it, maybe changed; raises Refused. The answer waits for its end."""


class CallTimer:
    """Of one connection. Streams of answers go on for ever: they are not timed, nor waited for."""

    def __init__(self, watched: frozenset[str]) -> None:
        self._watched = watched
        self._began: dict[int, tuple[float, str]] = {}
        self.idle = asyncio.Event()
        self.idle.set()

    def began(self, stream: int, path: str) -> None:
        if path in cri.UNARY:
            kind = "injected" if path in self._watched else "passed"
            self._began[stream] = (time.perf_counter(), kind)
            self.idle.clear()

    def ended(self, stream: int, *, refused: bool = False) -> None:
        found = self._began.pop(stream, None)
        if found is None:
            return
        began, kind = found
        KINDS["refused" if refused else kind].observe(time.perf_counter() - began)
        if not self._began:
            self.idle.set()


class ProxyConnection:
    """Of one client: calls that have a handler are held for it, all others pass."""

    def __init__(self, runtime: Path, handlers: Mapping[str, Handler]) -> None:
        self._path, self._handlers = runtime, handlers
        self.over = asyncio.Event()
        """When nothing of it is left."""
        self._relay = Relay(handlers, self)
        self._timer = CallTimer(frozenset(handlers))
        self._undecided: dict[int, asyncio.Task[None]] = {}
        """By stream, calls that wait for us or for the runtime."""
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.client = JoinedSocket(self._from_client, self._lost)
        self._runtime = JoinedSocket(self._from_runtime, self._lost)
        self.client.join(self._runtime)

    @property
    def idle(self) -> asyncio.Event:
        """No call is under way that is worth waiting for."""
        return self._timer.idle

    def open(self) -> JoinedSocket:
        """What a server needs for a socket that it accepted."""
        self._keep(asyncio.create_task(self._connect()))
        return self.client

    def leave(self) -> None:
        """The client is to begin no more calls; those under way go on."""
        self._relay.leave(LAST_STREAM, ErrorCode.NO_ERROR)
        self._flush()

    def close(self, code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        self._relay.leave(self._relay.last, code)
        self._flush()
        self.client.close()
        self._runtime.close()

    def abort(self) -> None:
        """Without waiting for anybody to take what was written."""
        self.client.abort()
        self._runtime.abort()

    def began(self, stream: int, path: str) -> None:
        self._timer.began(stream, path)

    def asked(self, stream: int, path: str, data: bytes) -> None:
        task = asyncio.create_task(self._handle(stream, path, data))
        self._undecided[stream] = task
        self._keep(task)

    def ended(self, stream: int, answer: bytes | None) -> None:
        self._timer.ended(stream)
        task = self._undecided.pop(stream, None)
        if task is None:
            return
        if answer:
            self._answers.pop(stream).set_result(answer)
        else:
            task.cancel()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(lambda: self._runtime, str(self._path))
        except OSError as error:
            LOG.warning("runtime not there", socket=str(self._path), why=str(error))
            self.client.abort()
            return
        self.client.listen()
        self._flush()

    async def _handle(self, stream: int, path: str, data: bytes) -> None:
        try:
            await self._handlers[path](envelope.open_envelope(data), partial(self._send, stream))
        except Refused as error:
            self._timer.ended(stream, refused=True)
            if not self._relay.refuse(stream, error.code, error.words):
                LOG.warning("answer not understood", call=path, why=error.words)
        finally:
            self._undecided.pop(stream, None)
            self._answers.pop(stream, None)
            self._relay.settled(stream)
            self._flush()

    async def _send(self, stream: int, message: bytes) -> bytes:
        answer = self._answers[stream] = asyncio.get_running_loop().create_future()
        self._relay.send(stream, message)
        self._flush()
        return envelope.open_envelope(await answer)

    def _from_client(self, data: bytes) -> None:
        self._take(self._relay.from_client, data)

    def _from_runtime(self, data: bytes) -> None:
        self._take(self._relay.from_runtime, data)

    def _take(self, relayed: Callable[[bytes], None], data: bytes) -> None:
        try:
            relayed(data)
        except BadFrames as error:
            LOG.warning("connection broken off", why=str(error))
            self.close(ErrorCode.PROTOCOL_ERROR)
        else:
            self._flush()

    def _flush(self) -> None:
        self.client.write(self._relay.to_client)
        self._runtime.write(self._relay.to_runtime)

    def _lost(self) -> None:
        """One of them; what is not decided will not be."""
        while self._undecided:
            self._undecided.popitem()[1].cancel()
        self.client.close()
        self._runtime.close()
        self._look()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._look()

    def _look(self) -> None:
        if self.client.gone and self._runtime.gone and not self._tasks:
            self.over.set()
            self._timer.idle.set()
