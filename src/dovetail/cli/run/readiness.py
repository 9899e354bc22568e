"""Readiness told to systemd: one datagram to its socket, once all workers serve."""

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


class NotifyingServer(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            notify("READY=1")


class NotifyingWorkers(Multiprocess):
    def init_processes(self) -> None:
        super().init_processes()
        seconds = self.config.timeout_worker_healthcheck
        if SOCKET in os.environ and all(
            worker.wait_until_ready(seconds, self.should_exit) for worker in self.processes
        ):
            notify("READY=1")
