"""Listeners at unix sockets: made closed to others, and removed when the agent ends.

The daemon serves gRPC by `GrpcListener`; the CRI proxy takes connections by `ProtocolListener`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from dovetail.core.errors import DovetailError
from dovetail.wire.rpc import OPTIONS, Served, offer

GRACE_SECONDS = 2.0
"""For questions under way when it ends."""


class CannotServe(DovetailError):
    """A socket that cannot be made."""


class SocketFile:
    """The path of a unix socket that one process serves at, open to its owner only.

    The socket is made under a draft name, closed to others, and gets its own name when it answers:
    so nobody gets in before it is closed, and whoever was there before is replaced at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode: int | None = None

    async def publish(
        self, bind: Callable[[Path], object], listen: Callable[[], Awaitable[object]]
    ) -> None:
        """Raises CannotServe; whoever calls has then to close what was bound."""
        if await asyncio.to_thread(answers, self._path):
            raise CannotServe(f"{self._path}: another process serves there; stop it first")
        draft = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            bind(draft)
            draft.chmod(0o600)
            await listen()
            draft.rename(self._path)
        except (OSError, RuntimeError) as error:
            raise CannotServe(f"{self._path}: no socket can be made there: {error}") from None
        self._inode = self._path.stat().st_ino

    def remove(self) -> None:
        """Unless the name is another's by now."""
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()


class GrpcListener:
    """A gRPC server at a unix socket: the control socket, the pod resources API."""

    def __init__(
        self,
        path: Path,
        *,
        served: Sequence[Served] = (),
        handlers: Sequence[grpc.GenericRpcHandler] = (),
        options: Sequence[tuple[str, Any]] = OPTIONS,
    ) -> None:
        self._file = SocketFile(path)
        self._server = grpc.aio.server(options=options)
        offer(self._server, served)
        self._server.add_generic_rpc_handlers(handlers)

    async def start(self) -> None:
        """Raises CannotServe."""
        try:
            await self._file.publish(self._bind, self._server.start)
        except CannotServe:
            await self._server.stop(0)
            raise

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        # First the name, so that nobody comes who would be turned away.
        self._file.remove()
        await self._server.stop(grace)

    def _bind(self, path: Path) -> None:
        self._server.add_insecure_port(f"unix:{path}")


class ProtocolListener:
    """An asyncio server at a unix socket: where clients of the CRI proxy come to."""

    def __init__(self, path: Path, accept: Callable[[], asyncio.Protocol]) -> None:
        self._file, self._accept = SocketFile(path), accept

    async def start(self) -> None:
        """Raises CannotServe."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            await self._file.publish(lambda path: self._socket.bind(str(path)), self._listen)
        except CannotServe:
            self._socket.close()
            raise

    def stop(self) -> None:
        # First the name, so that nobody comes who would be turned away.
        self._file.remove()
        self._server.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, sock=self._socket)


def answers(path: Path) -> bool:
    """Whether somebody serves there: a socket of one that died is only a name."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
