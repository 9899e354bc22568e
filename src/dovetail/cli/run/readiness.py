"""Servers that tell systemd when they are ready: one datagram to the socket it names."""

from __future__ import annotations

import os
import socket

import uvicorn
from uvicorn.supervisors import Multiprocess

SOCKET = "NOTIFY_SOCKET"


def notify(state: str) -> None:
    """Tell the service manager; nothing happens where there is none."""
    address = os.environ.get(SOCKET)
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        # A leading @ stands for the NUL of an abstract address.
        speaker.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        speaker.sendall(state.encode())


class OneProcess(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            notify("READY=1")


class Workers(Multiprocess):
    def init_processes(self) -> None:
        super().init_processes()
        patience = self.config.timeout_worker_healthcheck
        if SOCKET in os.environ and all(
            worker.wait_until_ready(patience, self.should_exit) for worker in self.processes
        ):
            notify("READY=1")
