"""Server processes on loopback: started, waited for, told to end or killed, started again.

Needs the standard library only: the runners of tests/conformance have another environment.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 15.0


class ServerError(Exception):
    """A server did not come up, or did not end when it was told to."""


class Server:
    """One process at a time, always on the same port; what it says is kept in the log.

    It stays in the caller's process group, so that ending the group ends it, too.
    """

    def __init__(
        self, command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._command = [*command, "--port", str(port)]
        self._log = log
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._await_answer(self._process)

    def stop(self) -> None:
        """As an operator would: it may finish what it is doing."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._error(f"was still there {STOP_SECONDS:.0f} s after SIGTERM") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """As a power cut would: no handler runs, nothing is flushed or answered."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def log_tail(self) -> str:
        """Its last words other than about requests."""
        lines = self._log.read_text(errors="replace").splitlines()
        telling = [line[:3000] for line in lines if '"event":"request"' not in line]
        return "\n".join(telling[-5:])

    def _await_answer(self, process: subprocess.Popen[bytes]) -> None:
        words = f"{' '.join(self._command)}\n"
        await_answer(self.port, lambda: process.poll() is None, lambda: words + self.log_tail())

    def _error(self, what: str) -> ServerError:
        return ServerError(f"the server {what}: {self.log_tail()}\n{' '.join(self._command)}")


def await_answer(port: int, alive: Callable[[], bool], words: Callable[[], str]) -> None:
    """Until the server at the port does; `words` are its last ones, should it not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not alive():
            raise ServerError(f"the server ended: {words()}")
        if _answers(port):
            return
        time.sleep(0.03)
    raise ServerError(f"the server did not answer within {START_SECONDS:.0f} s: {words()}")


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """The server of a command that takes --port; however the block ends, none is left behind."""
    with reserved_port() as port:
        server = Server(command, port, log, environment or {})
        try:
            server.start()
            yield server
        finally:
            server.stop()


def dovetail(database: str, log: Path) -> AbstractContextManager[Server]:
    """The Dovetail of the environment this runs in, with Placement's old rules."""
    program = str(Path(sys.executable).with_name("dovetail"))
    options = ["--host", "127.0.0.1", "--auth", "noauth2", "--policy", "legacy"]
    return running([program, "serve", "--database", database, *options], log)


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port for servers of this block only, even while none of them is there.

    Without that another test's server, or the near end of a client's connection, could take it.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        # Linux lets two sockets share a port if both say so and at most one listens. Servers say
        # so; said only now, it lets them in and keeps out others that look for a free port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield holder.getsockname()[1]


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
