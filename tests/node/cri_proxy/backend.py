"""A runtime of the tests' own, and the proxy before it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio

from dovetail.node.common.ports import AdmissionPort
from dovetail.node.cri_proxy.proxy import Proxy
from tests.support.node.gates import Scripted

VERSION = "/runtime.v1.RuntimeService/Version"
UNKNOWN = "/runtime.v2.Whatever/Chat"
BIG = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20)]


class Backend(grpc.GenericRpcHandler):
    """A runtime of the test's own: a stream in both directions for every method."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.metadata: dict[str, Any] = {}
        self.remaining: list[float | None] = []
        self.hanging, self.cancelled = asyncio.Event(), asyncio.Event()
        self.hangs_always = False
        self.saying: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What it answers after an echo, and nothing for the end."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        self.paths.append(handler_call_details.method)
        return grpc.stream_stream_rpc_method_handler(self.answer)

    async def answer(self, bodies: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        self.metadata = dict(context.invocation_metadata())
        self.remaining.append(context.time_remaining())
        context.set_trailing_metadata((("after", "t"), ("after-bin", b"\xff")))
        await context.send_initial_metadata((("before", "i"),))
        async for body in bodies:
            self.bodies.append(body)
            if body == b"fail":
                await self.fail(context)
            if body == b"hang" or self.hangs_always:
                await self.hang()
            yield body
            if body == b"flood":
                await self.flooded(context)
            while body == b"echo" and (said := await self.saying.get()) is not None:
                if said == b"fail":
                    await self.fail(context)
                yield said

    async def fail(self, context: Any) -> None:
        details = (("grpc-status-details-bin", b"\x08\x05"), ("why", "so"))
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more", details)

    async def flooded(self, context: Any) -> None:
        """Until the other side has had enough."""
        try:
            while True:
                await context.write(b"x" * 65536)
        finally:
            self.cancelled.set()

    async def hang(self) -> None:
        self.hanging.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class Between(NamedTuple):
    backend: Backend
    channel: grpc.aio.Channel
    proxy: Proxy
    listen: Path
    server: grpc.aio.Server


@asynccontextmanager
async def between(gate: AdmissionPort | None = None) -> AsyncIterator[Between]:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    backend = Backend()
    server = grpc.aio.server(options=BIG)
    server.add_generic_rpc_handlers([backend])
    server.add_insecure_port(f"unix:{directory}/c.sock")
    await server.start()
    proxy = Proxy(directory / "p.sock", directory / "c.sock", gate or Scripted())
    await proxy.start()
    try:
        async with grpc.aio.insecure_channel(f"unix:{directory}/p.sock", BIG) as channel:
            yield Between(backend, channel, proxy, directory / "p.sock", server)
    finally:
        await proxy.stop(0)
        await server.stop(0)
        shutil.rmtree(directory)
