"""The bound on the head of a request, over a real socket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from dovetail.rest.server.listening.http_protocol import BoundedHttpProtocol
from dovetail.rest.server.pieces.sending import PiecewiseResponse

MOST = 10_000


async def agree(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with serving(BoundedHttpProtocol) as bound:
        yield bound


@contextmanager
def serving(
    protocol: type[BoundedHttpProtocol], application: ASGIApp = agree
) -> Iterator[tuple[str, int]]:
    config = uvicorn.Config(
        application,
        http=protocol,
        loop="uvloop",
        lifespan="off",
        log_config=None,
        h11_max_incomplete_event_size=MOST,
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join()
    listening.close()


def answer(address: tuple[str, int], *parts: bytes) -> bytes:
    with socket.create_connection(address, timeout=30) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            return connection.recv(1000)
        except ConnectionError:
            return b"closed"


def test_heads_up_to_the_bound_are_answered(address: tuple[str, int]) -> None:
    long = b"GET /?" + b"q" * 4000 + b" HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 5500 + b"\r\n\r\n"
    assert answer(address, long).startswith(b"HTTP/1.1 204")
    body = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50_000
    assert answer(address, body).startswith(b"HTTP/1.1 204")


def test_requests_on_one_connection_are_counted_apart(address: tuple[str, int]) -> None:
    one = b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 7000 + b"\r\n\r\n"
    with socket.create_connection(address, timeout=30) as connection:
        for _ in range(3):
            connection.sendall(one)
            assert connection.recv(1000).startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 12_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nlong: " + b"x" * 12_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 6000 + b"\r\n",
        b"GET / HTTP/1.1\r\nlong: " + b"x" * 12_000,
        b"GET / HTTP/1.1\r\n" + b"x" * 12_000,
        b"GET /" + b"x" * 12_000,
    ],
)
def test_longer_ones_are_refused_finished_or_not(address: tuple[str, int], head: bytes) -> None:
    assert answer(address, head).startswith(b"HTTP/1.1 400")
    assert answer(address, head[:5000], head[5000:]).startswith((b"HTTP/1.1 400", b"closed"))


class Impatient(BoundedHttpProtocol):
    head_seconds = 0.05


class Patient(BoundedHttpProtocol):
    head_seconds = 1.0


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nhost: x\r\nlong: x"])
def test_a_head_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    with serving(Impatient) as address:
        assert answer(address, sent) in {b"", b"closed"}


def test_what_follows_an_answer_may_take_its_time_but_not_for_ever() -> None:
    with (
        serving(Patient) as address,
        socket.create_connection(address, timeout=30) as connection,
    ):
        for _ in range(2):
            connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 204")
        connection.sendall(b"GET / HTTP")
        assert connection.recv(1000) == b""


class ImpatientToSend(BoundedHttpProtocol):
    stalled_seconds = 0.2


def test_whoever_reads_nothing_holds_no_answer() -> None:
    """Neither its memory, nor what makes it, longer than a piece may take."""
    ended = Event()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield bytes(2**16)

    async def send_much(scope: Scope, receive: Receive, send: Send) -> None:
        length = {"content-length": str(1000 * 2**16)}
        await PiecewiseResponse(pieces(), 200, length)(scope, receive, send)
        ended.set()

    request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    with (
        serving(ImpatientToSend, send_much) as address,
        socket.create_connection(address, timeout=30) as connection,
    ):
        connection.sendall(request)
        assert ended.wait(30)
        with socket.create_connection(address, timeout=30) as reader:
            reader.sendall(request)
            assert reader.recv(100).startswith(b"HTTP/1.1 200")
            received = sum(len(part) for part in iter(lambda: reader.recv(2**20), b""))
            assert received >= 999 * 2**16
