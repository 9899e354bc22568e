"""Legacy registration server: plugins call `Register` at a socket of ours; the registry runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio

from dovetail.core.errors import DovetailError
from dovetail.node.registry.handshake import UnfitPlugin, objection
from dovetail.node.wire.resource_plugin import REGISTER, Empty, RegisterRequest
from dovetail.wire.rpc import OPTIONS, Refused, Served, offer

NAME = "kubelet.sock"
"""As plugins of that kind expect it."""


class LegacyRegistrationServer:
    def __init__(self, directory: Path, register: Callable[[Path, RegisterRequest], None]) -> None:
        """`register` is called with the socket of each request, in order; raises UnfitPlugin."""
        self.directory, self.register = directory, register
        self.server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self.server = grpc.aio.server(options=OPTIONS)
        offer(self.server, [Served(REGISTER, self._register)])
        try:
            self.server.add_insecure_port(f"unix:{self.directory / NAME}")
        except RuntimeError as error:
            raise DovetailError(f"cannot serve at {self.directory / NAME}: {error}") from None
        await self.server.start()

    async def keep(self) -> None:
        """Serve anew if somebody removed the socket, or the whole directory."""
        if not (self.directory / NAME).is_socket():
            await self.stop()
            self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            await self.start()

    async def stop(self) -> None:
        if self.server:
            await self.server.stop(None)

    async def _register(self, request: RegisterRequest) -> Empty:
        try:
            if wrong := objection(request.resource_name, (request.version,)):
                raise UnfitPlugin(wrong)
            if not fits(request.endpoint):
                raise UnfitPlugin(f"{request.endpoint!r} is no name of a socket beside {NAME}")
            self.register(self.directory / request.endpoint, request)
        except UnfitPlugin as error:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        return Empty()


def fits(endpoint: str) -> bool:
    """Whether that can be the name of a plugin's socket, and does not lead elsewhere."""
    return bool(endpoint) and not {"/", "\0"} & {*endpoint} and endpoint not in (".", "..", NAME)
