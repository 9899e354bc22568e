"""Dovetail servers as child processes: started, killed the hard way, started again.

Used here and in tests/fuzz. Each keeps its port over restarts, logs to a file of its own and leads
a process group of its own, so that ending it ends nothing else.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

COMMAND = Path(sys.executable).with_name("dovetail")
PATIENCE = 60.0


class Server:
    """One `dovetail serve` on loopback."""

    def __init__(self, database: str, log: Path) -> None:
        self.database = database
        self.log = log
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(COMMAND), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--database", self.database, "--auth", "noauth2", "--policy", "legacy"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await_life(self.process)

    def kill(self) -> None:
        """As a power cut would: no handler runs, nothing is flushed or answered."""
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def log_tail(self) -> str:
        """Its last words other than about requests."""
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line[:3000] for line in lines if '"event":"request"' not in line]
        return "\n".join(telling[-5:])

    def _await_life(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if alive(self.port):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server on port {self.port} did not come up:\n{self.log_tail()}")


def alive(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    """A port outside the ephemeral range, where no client's own end can sit while it is down."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def running(*servers: Server) -> Iterator[None]:
    """Starts the servers and, however the block ends, leaves none behind."""
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.kill()


def fresh_database(cluster: str) -> str:
    """The URL of an empty database on a PostgreSQL server given by its own URL."""
    name = f"servers_{uuid.uuid4().hex}"
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return cluster.replace("/postgres?", f"/{name}?")
