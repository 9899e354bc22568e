"""Serves `kubelet.sock` for device plugins, in a directory of the agent's own; the manager runs it.

The directory is mounted where plugins expect the kubelet's. Plugins watch that socket: when it is
made anew they register again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc

from dovetail.node.device_plugins.introductions import device_socket_at, objection
from dovetail.node.wire.device_plugin import KUBELET_SOCKET, REGISTER, RegisterRequest
from dovetail.node.wire.listening import GrpcListener
from dovetail.node.wire.resource_plugin import Empty
from dovetail.wire.rpc import Refused, Served

STOP_SECONDS = 1.0


class DeviceRegistrationServer:
    def __init__(
        self, directory: Path, register: Callable[[RegisterRequest], Awaitable[None]]
    ) -> None:
        """`register` is called with each request that can be met; raises Refused."""
        self.directory, self._register = directory, register
        self._listener: GrpcListener | None = None

    async def start(self) -> None:
        """Raises CannotServe."""
        listener = GrpcListener(
            self.directory / KUBELET_SOCKET, served=[Served(REGISTER, self._answer)]
        )
        await listener.start()
        self._listener = listener

    async def keep(self) -> None:
        """Serve anew if somebody removed the socket, or the whole directory."""
        if device_socket_at(self.directory / KUBELET_SOCKET) is None:
            await self.stop()
            await self.start()

    async def stop(self) -> None:
        if self._listener:
            await self._listener.stop(STOP_SECONDS)
        self._listener = None

    async def _answer(self, request: RegisterRequest) -> Empty:
        if wrong := objection(request, self.directory):
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, wrong)
        await self._register(request)
        return Empty()
