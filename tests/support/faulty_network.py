"""A TCP proxy in front of PostgreSQL that falls silent, cuts connections, or loses an answer.

Silent is what a power loss or a firewall looks like from here: connections are taken and stay open,
and nothing comes out of them any more. Those that were silent stay so when the network heals.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import parse_qs, urlsplit

COMMIT = b"Q\0\0\0\x0bCOMMIT\0"
"""As a client sends it."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends an RST."""

Loss = Literal["request", "answer"]


class Link:
    """One connection through the proxy."""

    def __init__(self, near: socket.socket, far: socket.socket | None) -> None:
        self.near, self.far = near, far
        self.is_silent = far is None

    def reset(self) -> None:
        for each in filter(None, (self.near, self.far)):
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            # Wakes whoever reads it; the RST goes out with the close.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RD)
            each.close()


class FaultyNetwork:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        (folder,) = parse_qs(parts.query)["host"]
        self._far = f"{folder}/.s.PGSQL.{parse_qs(parts.query).get('port', ['5432'])[0]}"
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = f"postgresql://{parts.username}:@127.0.0.1:{port}{parts.path}"
        self._links: list[Link] = []
        self._is_silent = False
        self._lose: tuple[bytes, Loss] | None = None
        self.has_lost = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._is_silent = True
        for each in self._links:
            each.is_silent = True

    def lose(self, message: bytes, which: Loss) -> None:
        """Fall silent when a client sends this: before it, or after it and before its answer."""
        self.has_lost.clear()
        self._lose = (message, which)

    def heal(self) -> None:
        self._is_silent, self._lose = False, None

    def cut(self) -> None:
        """Reset all connections there are; new ones are taken."""
        links, self._links = self._links, []
        for each in links:
            each.reset()

    def close(self) -> None:
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = None
            if not self._is_silent:
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._far)
            link = Link(near, far)
            self._links.append(link)
            for source in filter(None, (near, far)):
                threading.Thread(target=self._pump, args=(link, source), daemon=True).start()

    def _pump(self, link: Link, source: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                if not link.is_silent:
                    self._forward(link, source, piece)
            if link.far is not None and not link.is_silent:
                # Closed by one end: the other hears of it.
                (link.far if source is link.near else link.near).shutdown(socket.SHUT_WR)

    def _forward(self, link: Link, source: socket.socket, piece: bytes) -> None:
        assert link.far is not None
        loss = self._lose
        if loss is not None and source is link.near and loss[0] in piece:
            self.fall_silent()
            if loss[1] == "answer":
                link.far.sendall(piece)
            self.has_lost.set()
            return
        (link.far if source is link.near else link.near).sendall(piece)


@contextmanager
def faulty_network(url: str) -> Iterator[FaultyNetwork]:
    """In front of the PostgreSQL server whose socket the URL names."""
    network = FaultyNetwork(url)
    try:
        yield network
    finally:
        network.close()
