"""The NRI plugin: a connection to containerd, which asks before it starts something.

What runs is seen through CRI. NRI's events do not tell it: after a restart containerd says nothing
of the end of pods from before. Of numbers, as shares of CPUs, containerd shows by CRI what the
kubelet asked for, until a first update; so a container whose plugins give it numbers gets one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from dovetail.aio.backoff import doubling
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionPort, ObservedContainer, Runtime, RuntimeRefused
from dovetail.node.cri.injection import has_resources
from dovetail.node.nri import adjustment
from dovetail.node.nri.cdi_support import why_no_cdi
from dovetail.node.nri.events import NriEvents
from dovetail.node.wire import nri
from dovetail.node.wire.ttrpc import CallFailed, Closed, Link

LOG = structlog.get_logger("dovetail.node.runtime")

DEADLINE_SECONDS = 10.0
"""For a call of ours."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.1, 5.0
"""Before connecting again."""


class NriRuntime:
    """A `Runtime`, and what asks the manager, over containerd's NRI socket."""

    def __init__(
        self,
        socket: Path,
        seen: Runtime,
        manager: AdmissionPort,
        *,
        name: str = "dovetail",
        index: int = 50,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """`seen`: shows what runs; `index`: plugins are asked in the order of these numbers, 0 to
        99."""
        self._socket, self._seen, self._manager = socket, seen, manager
        self._me = nri.RegisterPluginRequest(plugin_name=name, plugin_idx=f"{index:02}")
        self._deadline_seconds = deadline_seconds
        self._link: Link | None = None
        self._synchronized = asyncio.Event()
        self._configured = nri.ConfigureRequest()
        """What the runtime told of itself."""

    async def start(self) -> None:
        """Connect, now or as soon as the runtime is there."""
        self._running = asyncio.create_task(self._stay_connected())

    async def stop(self) -> None:
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    async def ready(self) -> None:
        """Wait until the runtime asks us."""
        await self._synchronized.wait()

    def why_no_cdi(self) -> str | None:
        """Why CDI devices of ours would be left out; None if they are not."""
        told = self._configured
        return why_no_cdi(told.runtime_name, told.runtime_version)

    async def sandboxes(self) -> Sequence[Sandbox]:
        return await self._seen.sandboxes()

    async def containers(self) -> Sequence[ObservedContainer]:
        return await self._seen.containers()

    async def update(self, id_: str, change: ContainerSettings) -> None:
        if not has_resources(change):
            return
        if self._link is None or not self._synchronized.is_set():
            raise RuntimeRefused(f"NRI at {self._socket}: not connected")
        question = nri.UpdateContainersRequest(update=(adjustment.update(id_, change),))
        try:
            answer = await self._link.call(nri.UPDATE_CONTAINERS, question, self._deadline_seconds)
        except CallFailed as error:
            raise RuntimeRefused(f"NRI at {self._socket}: {error}") from None
        if answer.failed:
            raise RuntimeRefused(
                f"NRI at {self._socket}: container {id_} was not updated; containerd's log says why"
            )

    async def _stay_connected(self) -> None:
        failures = 0
        while True:
            try:
                await self._session()
            except (OSError, CallFailed, Closed) as error:
                if self._synchronized.is_set():
                    failures = 0
                LOG.warning("nri not connected", socket=str(self._socket), why=str(error))
            finally:
                self._synchronized.clear()
                self._link = None
            failures += 1
            await asyncio.sleep(doubling(failures, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS))

    def _take_in(self, told: nri.ConfigureRequest) -> None:
        self._configured = told

    async def _session(self) -> None:
        """From connecting to the end of the connection."""
        reader, writer = await asyncio.open_unix_connection(str(self._socket))
        events = NriEvents(self._manager, self._synchronized, self._take_in)
        link = Link(reader, writer, nri.RUNTIME_CONNECTION, events.serve)
        running = asyncio.create_task(link.run())
        try:
            self._link = link
            await link.call(nri.REGISTER_PLUGIN, self._me, self._deadline_seconds)
            await running
        finally:
            running.cancel()
            link.close()
            with suppress(asyncio.CancelledError, Closed):
                await running
            with suppress(OSError):
                await writer.wait_closed()
