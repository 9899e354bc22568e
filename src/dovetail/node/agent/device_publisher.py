"""Publishes the machine's devices whenever they changed; the daemon calls it regularly."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.node.agent.settings import AgentSettings
from dovetail.node.report.machine_devices import devices_of
from dovetail.node.topology.reader import read

LOG = structlog.get_logger("dovetail.node.agent")

Publish = Callable[[str, Sequence[Device]], Awaitable[None]]
"""Tells the devices of a node to whoever hands them out."""


class DevicePublisher:
    def __init__(self, settings: AgentSettings, publish: Publish) -> None:
        self._sysfs = Path(settings.sysfs)
        self._node = settings.devices.node or socket.gethostname()
        self._publish = publish
        self._published: tuple[Device, ...] | None = None

    async def look(self) -> None:
        """Links go down and hugepages are set aside while the agent runs."""
        try:
            found = devices_of(self._node, read(self._sysfs))
            if found != self._published:
                await self._publish(self._node, found)
        except DovetailError as error:
            # Said again at the next look, and tried again.
            LOG.warning("devices not published", node=self._node, error=str(error))
            return
        if found != self._published:
            LOG.info("devices published", node=self._node, devices=len(found))
            self._published = found
