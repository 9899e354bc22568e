"""Decisions over a socket: a relay that outlives the agent asks it about the calls that it holds.

Both sides are here: what the agent serves, and the handlers of the relay. A call is a stream in
both directions, of a method that is named as the call of CRI is. The relay sends the question; the
agent sends what the runtime is to be asked; the relay sends the runtime's answer; the agent ends
the stream when it has taken that in. A refusal is the end of the stream with its code, and says by
its metadata that it is one: a stream may also break. Whoever ends a call early cancels the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import structlog

from dovetail.node.cri.client import OPTIONS, connect
from dovetail.node.cri_proxy.connection import Handler, Send
from dovetail.node.cri_proxy.decisions import DECIDED
from dovetail.node.wire import cri
from dovetail.node.wire.listening import GrpcListener
from dovetail.wire.rpc import Refused

SERVICE = "dovetail.agent.v1.Decisions"
"""Relay and agent may be of different versions: another protocol has another name."""

REFUSAL = (("dovetail-refusal", "1"),)

PASSED_WHEN_AWAY = ("RemovePodSandbox",)
"""Calls that are only told of: the agent finds out by itself when it is back."""

PAUSE_SECONDS = 0.05
"""Before an agent that is about to go is asked again."""

LOG = structlog.get_logger("dovetail.node.runtime")

Context = grpc.aio.ServicerContext[bytes, bytes]


def decision_server(socket: Path, handlers: Mapping[str, Handler]) -> GrpcListener:
    """What the agent serves; `handlers` by path of the call."""
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        path.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(partial(_decided, handler))
        for path, handler in handlers.items()
    }
    served = grpc.method_handlers_generic_handler(SERVICE, methods)
    return GrpcListener(socket, handlers=[served], options=OPTIONS)


async def _decided(handler: Handler, bodies: AsyncIterator[bytes], context: Context) -> None:
    async def next_body() -> bytes:
        async for body in bodies:
            return body
        # The relay ended the call without a question, or without an answer.
        raise asyncio.CancelledError

    async def send(message: bytes) -> bytes:
        await context.write(message)
        return await next_body()

    try:
        await handler(await next_body(), send)
    except Refused as error:
        await context.abort(error.code, error.words, REFUSAL)


class AgentAway(Exception):
    """There is nobody at the agent's socket, or not any more."""


class RemoteDecisions:
    """The handlers of a relay: the agent decides, as soon as it is there."""

    def __init__(self, socket: Path, wait: float) -> None:
        """`wait`: seconds that a call waits for the agent."""
        self._socket, self._wait = socket, wait
        self.handlers: dict[str, Handler] = {
            f"/{cri.SERVICE}/{name}": partial(self._handle, name) for name in DECIDED
        }

    def start(self) -> None:
        self._channel = connect(self._socket)

    async def stop(self) -> None:
        await self._channel.close()

    async def _handle(self, name: str, body: bytes, send: Send) -> None:
        until = asyncio.get_running_loop().time() + self._wait
        while True:
            try:
                await self._reached(name, until)
                await self._asked(name, body, send)
            except AgentAway as error:
                if name in PASSED_WHEN_AWAY:
                    await send(body)
                    return
                if asyncio.get_running_loop().time() >= until:
                    LOG.warning("refused: the agent is away", call=name)
                    words = f"dovetail: agent_away: {error}; it is tried again"
                    raise Refused(grpc.StatusCode.UNAVAILABLE, words) from None
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return

    async def _reached(self, name: str, until: float) -> None:
        if name in PASSED_WHEN_AWAY:
            return
        try:
            async with asyncio.timeout_at(until):
                await self._channel.channel_ready()
        except TimeoutError:
            words = f"no node agent answers at {self._socket}, which decides about {name}"
            raise AgentAway(words) from None

    async def _asked(self, name: str, body: bytes, send: Send) -> None:
        """Raises AgentAway only if the runtime has not been asked."""
        asking: Any = self._channel.stream_stream(f"/{SERVICE}/{name}")
        stream = asking()
        try:
            answer = await send(await self._decision(stream, body))
            await self._tell(stream, name, answer)
        finally:
            stream.cancel()

    async def _decision(self, stream: Any, body: bytes) -> bytes:
        """What the runtime is to be asked; raises Refused, AgentAway."""
        try:
            await stream.write(body)
            found = await stream.read()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            found = grpc.aio.EOF
        if found is not grpc.aio.EOF:
            return bytes(found)
        words = await stream.details() or ""
        metadata = dict(await stream.trailing_metadata() or ())
        if metadata.keys() & dict(REFUSAL).keys():
            raise Refused(await stream.code(), words)
        raise AgentAway(f"the node agent at {self._socket} went: {words}")

    async def _tell(self, stream: Any, name: str, answer: bytes) -> None:
        """The runtime did it, whatever comes of this: an agent that went looks when it is back."""
        try:
            await stream.write(answer)
            await stream.done_writing()
            await stream.read()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            LOG.warning("agent not told", call=name, why=str(error))
