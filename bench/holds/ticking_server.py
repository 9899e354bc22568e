"""Dovetail with a ticker on its event loop, which tells the longest hold; `holds.measure` runs it.

A hold is the processor time of the whole process between two ticks, so neither a busy machine nor
a thread that keeps the interpreter to itself goes unnoticed or is blamed on the wrong one.
"""

import asyncio
import gc
import sys
import time

import orjson
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from dovetail.cli.run.serve import prepare
from dovetail.cli.run.settings import ServerSettings
from dovetail.cli.run.worker import application, hand_over
from dovetail.rest.server.listening.http_protocol import HEAD_BYTES, BoundedHttpProtocol

LONGEST_HOLD = "/-/longest-hold"
TICK_SECONDS = 0.001


class Ticker:
    def __init__(self) -> None:
        self.cpu_seconds = self.wall_seconds = self.gc_seconds = 0.0
        self._collecting_since = 0.0
        gc.callbacks.append(self._collecting)

    def _collecting(self, phase: str, _info: dict[str, int]) -> None:
        now = time.thread_time()
        if phase == "start":
            self._collecting_since = now
        else:
            self.gc_seconds = max(self.gc_seconds, now - self._collecting_since)

    async def run(self) -> None:
        cpu, wall = time.process_time(), time.monotonic()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now_cpu, now_wall = time.process_time(), time.monotonic()
            self.cpu_seconds = max(self.cpu_seconds, now_cpu - cpu)
            self.wall_seconds = max(self.wall_seconds, now_wall - wall)
            cpu, wall = now_cpu, now_wall

    def take(self) -> dict[str, float]:
        """The longest since the last time."""
        longest = {"cpu": self.cpu_seconds, "wall": self.wall_seconds, "gc": self.gc_seconds}
        self.cpu_seconds = self.wall_seconds = self.gc_seconds = 0.0
        return longest


class Ticking:
    """The application, with one more path."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner, self._ticker = inner, Ticker()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            self._task = asyncio.create_task(self._ticker.run())
        if scope.get("path") != LONGEST_HOLD:
            await self._inner(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps(self._ticker.take())})


def main(database: str, port: int) -> None:
    settings = ServerSettings(
        database=database, port=port, auth=("noauth2",), policy="open", log_level="error"
    )
    prepare(settings)
    hand_over(settings)
    config = uvicorn.Config(
        Ticking(application()),
        port=port,
        http=BoundedHttpProtocol,
        h11_max_incomplete_event_size=settings.max.query_bytes + HEAD_BYTES,
        loop="uvloop",
        lifespan="on",
        ws="none",
        access_log=False,
        server_header=False,
        log_config=None,
        timeout_keep_alive=600,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
