"""Servers for the commands to talk to: a real one with the demo fleet, and one that says what it
is told to say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from tests.support import server
from tests.support.paths import DOVETAIL

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that began with the demo fleet."""
    with demo_server(tmp_path_factory.mktemp("demo")) as url:
        yield url


@contextmanager
def demo_server(folder: Path) -> Iterator[str]:
    command = [DOVETAIL, "serve", "--demo", "--auth", "noauth2", "--policy", "open"]
    with server.running(command, folder / "log", cwd=folder, own_group=True) as started:
        yield started.url


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
