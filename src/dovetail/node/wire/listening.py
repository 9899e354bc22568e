"""Sockets that the agent serves at: made closed to others, and removed when it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from dovetail.core.errors import DovetailError
from dovetail.node.wire.rpc import OPTIONS, Served, offer

GRACE_SECONDS = 2.0
"""For questions under way when it ends."""


class CannotServe(DovetailError):
    """A socket that cannot be made."""


class Listening:
    """A gRPC server at a unix socket, for its owner only."""

    def __init__(
        self,
        path: Path,
        *,
        served: Sequence[Served] = (),
        handlers: Sequence[grpc.GenericRpcHandler] = (),
        options: Sequence[tuple[str, Any]] = OPTIONS,
    ) -> None:
        self._path = path
        self._server = grpc.aio.server(options=options)
        offer(self._server, served)
        self._server.add_generic_rpc_handlers(handlers)

    async def start(self) -> None:
        """Raises CannotServe."""
        if await asyncio.to_thread(answers, self._path):
            raise CannotServe(f"{self._path}: another process serves there; stop it first")
        # Under another name first: nobody gets in before the socket is closed to others.
        draft = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            self._server.add_insecure_port(f"unix:{draft}")
            draft.chmod(0o600)
            draft.rename(self._path)
        except (OSError, RuntimeError) as error:
            await self._server.stop(0)
            raise CannotServe(f"{self._path}: no socket can be made there: {error}") from None
        self._inode = self._path.stat().st_ino
        await self._server.start()

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        # First the name, so that nobody comes who would be turned away; unless it is another's.
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()
        await self._server.stop(grace)


def answers(path: Path) -> bool:
    """Whether somebody serves there: a socket of one that died is only a name."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
