"""A thin keep-alive HTTP client, whose own cost stays small beside what is timed.

Clients and servers share the machine: what a client costs is missing to the server that is timed.
`http.client` parses the head of an answer as a mail, which takes as long as a small request; so
this one reads no more of a head than status and length. Answers come back as status and bytes.
"""

import socket
import time
from collections.abc import Iterable
from http.client import HTTPConnection

import orjson

HEADERS = {
    "openstack-api-version": "placement 1.39",
    "x-auth-token": "admin",
    "accept": "application/json",
}
NDJSON_HEADERS = HEADERS | {"content-type": "application/x-ndjson"}
HEAD = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items()).encode() + (
    b"host: 127.0.0.1\r\n\r\n"
)
JSON_HEAD = b"content-type: application/json\r\n" + HEAD
TIMEOUT = 900
ATTEMPTS = 8
RECEIVED_BYTES = 2**18


class UnexpectedAnswerError(Exception):
    """A server refused something the bench needs."""


class Client:
    """One connection, opened when it is needed and again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def get(self, path: str) -> tuple[int, bytes]:
        return self._exchange("GET", path, b"", HEAD)

    def send(self, method: str, path: str, document: object = None) -> tuple[int, bytes]:
        body = b"" if document is None else orjson.dumps(document)
        return self._exchange(method, path, body, JSON_HEAD)

    def stream(self, path: str, body: Iterable[bytes]) -> tuple[int, bytes]:
        """A body that is made while it is sent, over a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        try:
            connection.request("POST", path, body, NDJSON_HEADERS)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def insist(self, method: str, path: str, document: object = None) -> None:
        """Write, and try again after a 5xx: SQLite under two writers answers some of them."""
        for attempt in range(ATTEMPTS):
            status, answer = self.send(method, path, document)
            if status < 500:
                break
            time.sleep(0.05 * 2**attempt)
        require(status, answer, f"{method} {path}")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, method: str, path: str, body: bytes, head: bytes) -> tuple[int, bytes]:
        start = f"{method} {path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n".encode()
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), TIMEOUT)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(start + head + body)
        answer, rest = self._head()
        status = int(answer[9:12])
        length = 0 if status == 204 else _number(answer, b"\r\ncontent-length:")
        parts, missing = [rest], length - len(rest)
        while missing > 0:
            parts.append(self._receive(missing))
            missing -= len(parts[-1])
        if b"\r\nconnection: close" in answer:
            self.close()
        return status, b"".join(parts)

    def _head(self) -> tuple[bytes, bytes]:
        """The head of an answer in lower case, and what came of the body with it."""
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._receive(RECEIVED_BYTES)
        return received[: end + 2].lower(), received[end + 4 :]

    def _receive(self, most: int) -> bytes:
        assert self._socket is not None
        received = self._socket.recv(min(most, RECEIVED_BYTES))
        if not received:
            self.close()
            raise UnexpectedAnswerError("the server closed the connection")
        return received


def _number(head: bytes, name: bytes) -> int:
    """Of a header, which has to be there: neither server sends these answers in chunks."""
    at = head.index(name) + len(name)
    return int(head[at : head.index(b"\r", at)])


def require(status: int, answer: bytes, what: str) -> None:
    if not 200 <= status < 300:
        raise UnexpectedAnswerError(f"{what}: {status} {answer[:500].decode(errors='replace')}")
