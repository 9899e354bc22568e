"""Servers for the commands to talk to: a real one with the demo fleet, and one that says what it
is told to say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from tests.support.server import reserved_port

Run = Callable[..., Result]
DOVETAIL = str(Path(sys.executable).parent / "dovetail")


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that began with the demo fleet."""
    with demo_server(tmp_path_factory.mktemp("demo")) as url:
        yield url


@contextmanager
def demo_server(folder: Path) -> Iterator[str]:
    with reserved_port() as port:
        options = ["--demo", "--auth", "noauth2", "--policy", "open", "--port", str(port)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [DOVETAIL, "serve", *options],
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with suppress(httpx2.TransportError):
                if httpx2.get(f"{url}/livez").status_code == 200:
                    break
            time.sleep(0.1)
        try:
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def run(demo: str) -> Run:
    """Runs a command against the demo fleet."""
    return commands(demo)


def commands(url: str, token: str | None = "admin") -> Run:
    def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
        environment = {"DOVETAIL_SERVER": url, "DOVETAIL_TOKEN": token}
        return CliRunner().invoke(main, arguments, env=environment, input=stdin)

    return invoke


class Parrot(ThreadingHTTPServer):
    """Answers with what it was told, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def says(self, method: str, path: str, document: Any, status: int = 200) -> None:
        self.answers[method, path] = (status, document)


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Parrot

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.server.asked.append((self.command, self.path, self.rfile.read(length)))
        known = self.server.answers.get((self.command, self.path.partition("?")[0]))
        status, document = known or (404, {"detail": f"nothing is said about {self.path}"})
        body = document if isinstance(document, bytes) else orjson.dumps(document)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def log_message(self, *_args: Any) -> None:
        """Tests need no log."""


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    server = Parrot()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
