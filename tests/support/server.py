"""Server processes on loopback, which are there as soon as they answer HTTP.

Needs the standard library only: the runners of tests/conformance have another environment.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.support.paths import DOVETAIL
from tests.support.processes import START_SECONDS, STOP_SECONDS, Process, reserved_port


class Server(Process):
    """One process at a time, always on the same port, which its command names."""

    def __init__(
        self,
        command: Sequence[object],
        port: int,
        log: Path,
        *,
        name: str = "",
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        errors: Path | None = None,
        own_group: bool = False,
        start_seconds: float = START_SECONDS,
    ) -> None:
        super().__init__(
            command,
            log,
            name=name,
            environment=environment,
            cwd=cwd,
            errors=errors,
            own_group=own_group,
        )
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._start_seconds = start_seconds

    def start(self) -> None:
        super().start()
        self.await_ready(lambda: answers(self.port), self._start_seconds)

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        if not super().stop(seconds):
            raise self.error(f"was still there {seconds:.0f} s after SIGTERM")
        return True


@contextmanager
def running(
    command: Sequence[object],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    errors: Path | None = None,
    own_group: bool = False,
    start_seconds: float = START_SECONDS,
) -> Iterator[Server]:
    """The server of a command that takes --port; however the block ends, none is left behind."""
    with reserved_port() as port:
        server = Server(
            [*command, "--port", str(port)],
            port,
            log,
            environment=environment,
            cwd=cwd,
            errors=errors,
            own_group=own_group,
            start_seconds=start_seconds,
        )
        try:
            server.start()
            yield server
        finally:
            server.stop()


def dovetail(
    database: str, log: Path, start_seconds: float = START_SECONDS
) -> AbstractContextManager[Server]:
    """Dovetail with Placement's old rules."""
    options = ["--host", "127.0.0.1", "--auth", "noauth2", "--policy", "legacy"]
    command = [DOVETAIL, "serve", "--database", database, *options]
    return running(command, log, start_seconds=start_seconds)


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
