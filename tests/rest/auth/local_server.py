"""A small HTTP server on loopback, in a thread, that can go down and come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Reply = tuple[int, Mapping[str, str], Any]
Answer = Callable[[str, str, Mapping[str, str], bytes], Reply]
"""From method, path, headers (names in lower case) and body to what is answered."""


class LocalServer:
    def __init__(self, answer: Answer) -> None:
        self._handler = handler_of(answer)
        self._port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler)
        self._port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def handler_of(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            status, more, document = answer(self.command, self.path, headers, body)
            content = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
