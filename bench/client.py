"""A thin keep-alive HTTP client, whose own cost stays small beside what is timed.

Answers come back as status and bytes; nothing is parsed here.
"""

import time
from collections.abc import Iterable
from http.client import HTTPConnection

import orjson

HEADERS = {
    "openstack-api-version": "placement 1.39",
    "x-auth-token": "admin",
    "accept": "application/json",
}
JSON_HEADERS = HEADERS | {"content-type": "application/json"}
NDJSON_HEADERS = HEADERS | {"content-type": "application/x-ndjson"}
TIMEOUT = 900
ATTEMPTS = 8


class UnexpectedAnswerError(Exception):
    """A server refused something the bench needs."""


class Client:
    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)

    def get(self, path: str) -> tuple[int, bytes]:
        return self._exchange("GET", path, None, HEADERS)

    def send(self, method: str, path: str, document: object = None) -> tuple[int, bytes]:
        body = None if document is None else orjson.dumps(document)
        return self._exchange(method, path, body, JSON_HEADERS)

    def stream(self, path: str, body: Iterable[bytes]) -> tuple[int, bytes]:
        return self._exchange("POST", path, body, NDJSON_HEADERS)

    def insist(self, method: str, path: str, document: object = None) -> None:
        """Write, and try again after a 5xx: SQLite under two writers answers some of them."""
        for attempt in range(ATTEMPTS):
            status, answer = self.send(method, path, document)
            if status < 500:
                break
            time.sleep(0.05 * 2**attempt)
        require(status, answer, f"{method} {path}")

    def close(self) -> None:
        self._connection.close()

    def _exchange(
        self, method: str, path: str, body: Iterable[bytes] | bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def require(status: int, answer: bytes, what: str) -> None:
    if not 200 <= status < 300:
        raise UnexpectedAnswerError(f"{what}: {status} {answer[:500].decode(errors='replace')}")
