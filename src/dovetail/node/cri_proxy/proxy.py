"""The CRI proxy: the kubelet's runtime endpoint is ours, and behind it is the real runtime.

The calls of `decisions` are held for their handlers. Everything else is passed on, and works
whatever state the agent is in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from dovetail.node.common.ports import AdmissionPort
from dovetail.node.cri_proxy.connection import Handler, ProxyConnection
from dovetail.node.cri_proxy.decisions import CallDecisions
from dovetail.node.wire.listening import ProtocolListener

LOG = structlog.get_logger("dovetail.node.runtime")

FAREWELL_SECONDS = 1.0
"""For clients to take what was written to them."""


class CriEndpoint:
    """Serves CRI at `listen` and passes calls on to the runtime at `runtime`."""

    def __init__(self, listen: Path, runtime: Path, handlers: Mapping[str, Handler]) -> None:
        self._listen, self._runtime, self._handlers = listen, runtime, handlers
        self._listener = ProtocolListener(listen, self._accept)
        self._connections: list[ProxyConnection] = []

    async def start(self) -> None:
        """Raises CannotServe."""
        await self._listener.start()
        LOG.info("proxy listens", socket=str(self._listen), runtime=str(self._runtime))

    async def stop(self, grace: float = 5.0) -> None:
        """Let calls under way end within `grace` seconds."""
        self._listener.stop()
        here = self._connections
        for each in here:
            each.leave()
        await _all((each.idle for each in here), grace)
        for each in here:
            each.close()
        await _all((each.over for each in here), FAREWELL_SECONDS)
        for each in here:
            each.abort()
        await _all((each.over for each in here), None)

    def _accept(self) -> asyncio.Protocol:
        connection = ProxyConnection(self._runtime, self._handlers)
        # Those that are over need to be forgotten only when there would be more and more.
        self._connections = [each for each in self._connections if not each.over.is_set()]
        self._connections.append(connection)
        return connection.open()


class Proxy:
    """An endpoint whose calls the manager decides, in one process."""

    def __init__(self, listen: Path, runtime: Path, manager: AdmissionPort) -> None:
        self._decisions = CallDecisions(runtime, manager)
        self._endpoint = CriEndpoint(listen, runtime, self._decisions.handlers)

    async def start(self) -> None:
        """Raises CannotServe."""
        await self._endpoint.start()
        self._decisions.start()

    async def stop(self, grace: float = 5.0) -> None:
        """Let calls under way end within `grace` seconds."""
        await self._endpoint.stop(grace)
        await self._decisions.stop()


async def _all(events: Iterable[asyncio.Event], seconds: float | None) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(each.wait() for each in events))
