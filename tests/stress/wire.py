"""A JSON client that knows what it does not know.

A call to several replicas goes to one of them at random. It ends in an answer, in Unreachable
(nothing was sent) or in Lost (sent, and nobody can say what became of it).
"""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

HEADERS = {
    "content-type": "application/json",
    "openstack-api-version": "placement 1.39",
    "x-auth-token": "admin",
}
TIMEOUT = 20.0


class UnreachableError(Exception):
    """No connection, hence no request."""


class LostError(Exception):
    """The connection died between the request and its answer."""


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def code(self) -> str:
        """The error code of a refusal."""
        return str(self.body["errors"][0].get("code", ""))


class Wire:
    def __init__(self, ports: Sequence[int], chance: random.Random) -> None:
        self._ports = list(ports)
        self._chance = chance
        self._open: dict[int, http.client.HTTPConnection] = {}

    def call(self, method: str, path: str, body: object = None) -> Answer:
        port = self._chance.choice(self._ports)
        connection = self._connected(port)
        payload = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, payload, HEADERS)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._open.pop(port).close()
            raise LostError(f"{method} {path}: {error!r}") from error
        return Answer(response.status, json.loads(content) if content else None)

    def read(self, path: str) -> Any:
        """The answer to a GET that has to succeed."""
        answer = self.call("GET", path)
        assert answer.status == http.HTTPStatus.OK, (path, answer)
        return answer.body

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _connected(self, port: int) -> http.client.HTTPConnection:
        connection = self._open.get(port)
        if connection is None or connection.sock is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                raise UnreachableError(str(error)) from error
            self._open[port] = connection
        return connection
