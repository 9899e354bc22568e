"""A plugin on its socket, which is in the agent's plugin directory: that is how it is found.

The socket appears under its name only when it answers. Should somebody delete it, as an agent that
starts may do to have its plugins register again, it is made anew.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from contextlib import suppress
from pathlib import Path

import grpc.aio
import structlog

from dovetail.core.errors import DovetailError
from dovetail.node.sdk.plugin import ResourcePlugin
from dovetail.wire.rpc import OPTIONS, offer

LOG = structlog.get_logger("dovetail.node.sdk")

LONGEST_PATH_BYTES = 107
"""Of the path of a unix socket."""


class BadSocket(DovetailError):
    """A path at which nothing can be served."""


def run(plugin: ResourcePlugin, socket: Path) -> None:
    """Serve the plugin until SIGTERM or SIGINT: all that a process for one plugin needs to do."""
    asyncio.run(_serve_until_signal(plugin, socket))


async def _serve_until_signal(plugin: ResourcePlugin, socket: Path) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await serve(plugin, socket, stop)


async def serve(plugin: ResourcePlugin, socket: Path, stop: asyncio.Event) -> None:
    """Serve the plugin until told to stop; then end what is being asked, and remove the socket."""
    server = PluginServer(plugin, socket)
    await server.start()
    try:
        await stop.wait()
    finally:
        await server.stop()


class PluginServer:
    def __init__(
        self, plugin: ResourcePlugin, socket: Path, *, period: float = 1.0, grace: float = 5.0
    ) -> None:
        """`period`: seconds between looks at the socket; `grace`: for calls when it stops."""
        self.plugin, self.socket = plugin, socket
        self.period, self.grace = period, grace
        self.server: grpc.aio.Server | None = None
        self.inode: int | None = None
        self.looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises BadSocket."""
        await self._publish()
        self.looking = asyncio.create_task(self._look_after_socket())

    async def stop(self) -> None:
        if self.looking:
            self.looking.cancel()
            with suppress(asyncio.CancelledError):
                await self.looking
        if self.inode is not None and inode_of(self.socket) == self.inode:
            self.socket.unlink(missing_ok=True)
        if self.server:
            await self.server.stop(self.grace)

    async def _publish(self) -> None:
        """A new server, and the socket by its name; then the old server may end."""
        # By chance: plugins in containers share the directory, and often the number of a process.
        draft = self.socket.with_name(f".{secrets.token_hex(4)}")
        longest = max(len(os.fsencode(each)) for each in (draft, self.socket))
        if longest > LONGEST_PATH_BYTES:
            raise BadSocket(
                f"{self.socket}: the path may have {LONGEST_PATH_BYTES} bytes, not {longest}"
            )
        server = grpc.aio.server(options=OPTIONS)
        offer(server, self.plugin.served())
        try:
            server.add_insecure_port(f"unix:{draft}")
        except RuntimeError as error:
            raise BadSocket(f"cannot serve at {self.socket}: {error}") from None
        await server.start()
        try:
            draft.replace(self.socket)
        except OSError as error:
            await server.stop(None)
            raise BadSocket(f"cannot serve at {self.socket}: {error.strerror}") from None
        self.inode = inode_of(self.socket)
        before, self.server = self.server, server
        if before:
            await before.stop(self.grace)

    async def _look_after_socket(self) -> None:
        while True:
            await asyncio.sleep(self.period)
            # A socket that somebody else put there is left alone: a newer instance, most likely.
            if inode_of(self.socket) is None:
                LOG.warning("socket gone, making it anew", socket=str(self.socket))
                try:
                    await self._publish()
                except BadSocket as error:
                    LOG.warning("cannot serve yet", socket=str(self.socket), error=str(error))


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
