"""How long calls take that pass the proxy, and whether any is under way."""

from __future__ import annotations

import asyncio
import time

from dovetail.node.common.metrics import AGENT_METRICS, SECONDS
from dovetail.node.wire import cri

PROXIED = AGENT_METRICS.histogram(
    "proxied_call_seconds",
    "Calls that went through to the runtime, by kind: passed, injected or refused.",
    SECONDS,
    "kind",
)
KINDS = {kind: PROXIED.labels(kind) for kind in ("passed", "injected", "refused")}


class CallTimer:
    """Of one connection. Streams of answers go on for ever: they are not timed, nor waited for."""

    def __init__(self, watched: frozenset[str]) -> None:
        self._watched = watched
        self._began: dict[int, tuple[float, str]] = {}
        self.idle = asyncio.Event()
        self.idle.set()

    def began(self, stream: int, path: str) -> None:
        if path in cri.UNARY:
            kind = "injected" if path in self._watched else "passed"
            self._began[stream] = (time.perf_counter(), kind)
            self.idle.clear()

    def ended(self, stream: int, *, refused: bool = False) -> None:
        found = self._began.pop(stream, None)
        if found is None:
            return
        began, kind = found
        KINDS["refused" if refused else kind].observe(time.perf_counter() - began)
        if not self._began:
            self.idle.set()
