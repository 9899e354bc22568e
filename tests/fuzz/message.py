"""HTTP requests byte by byte, so that they can be wrong in every way, and the answers to them."""

from __future__ import annotations

import contextlib
import http.client
import socket
from typing import NamedTuple

TIMEOUT = 20.0
Headers = tuple[tuple[bytes, bytes], ...]


class Message(NamedTuple):
    """One request; `chunks` replaces the body's length by chunked transfer."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes | None = None
    chunks: int = 0

    def encoded(self) -> bytes:
        lines = [b"%s %s HTTP/1.1" % (self.method, self.target), b"Host: localhost"]
        lines += [b"%s: %s" % header for header in self.headers]
        lines.append(b"Connection: close")
        if self.chunks:
            lines.append(b"Transfer-Encoding: chunked")
        elif self.body is not None:
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + self._payload()

    def header(self, name: bytes) -> bytes | None:
        """The last one of this name, or None."""
        found = [value for key, value in self.headers if key.lower() == name]
        return found[-1] if found else None

    def without(self, name: bytes) -> Message:
        kept = tuple(header for header in self.headers if header[0].lower() != name)
        return self._replace(headers=kept)

    def with_header(self, name: bytes, value: bytes) -> Message:
        return self._replace(headers=(*self.headers, (name, value)))

    def _payload(self) -> bytes:
        body = self.body or b""
        if not self.chunks:
            return body
        size = max(1, len(body) // self.chunks)
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def exchange(
    port: int, request: bytes, method: str = "GET", *, hang_up: bool = False
) -> Reply | None:
    """The reply to these bytes, on a connection of their own; None: it was closed without one.

    `hang_up` says that nothing more will come, for requests that are not whole.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        # A server may refuse before it has read everything: its answer still counts.
        with contextlib.suppress(OSError):
            connection.sendall(request)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(connection, method=method)
        try:
            response.begin()
            body = response.read()
        except (http.client.HTTPException, ConnectionError):
            return None
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, body)
