"""Registrations of device plugins on disk: they are redialled after a restart of the agent.

The manager writes a registration before it is answered, and lists of devices soon after they came:
so the node's devices are known, if unhealthy, before their plugin is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import structlog

from dovetail.node.common.device_plugins import PluginDevice, PluginOptions
from dovetail.node.sdk.files import write_atomically

LOG = structlog.get_logger("dovetail.node.device_plugins")

FILE = "device-plugins.json"
VERSION = 1


class DevicePluginRecord(msgspec.Struct, frozen=True, kw_only=True):
    endpoint: str
    """The name of its socket; empty if another resource is served there by now."""
    options: PluginOptions = PluginOptions()
    devices: tuple[PluginDevice, ...] = ()
    """By ID; how they fare is not kept."""


class DevicePluginRecords(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    plugins: Mapping[str, DevicePluginRecord] = {}
    """By resource."""


class RecordFile:
    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE
        self._saved: Mapping[str, DevicePluginRecord] = {}
        self._trouble = ""
        self._writing = asyncio.Lock()

    def load(self) -> Mapping[str, DevicePluginRecord]:
        """Of before; a file that is corrupt is set aside: plugins register again by themselves."""
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=DevicePluginRecords)
        except FileNotFoundError:
            return {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._set_aside(repr(error))
            return {}
        if found.version != VERSION:
            self._set_aside(f"it has version {found.version}; this is for version {VERSION}")
            return {}
        self._saved = found.plugins
        return found.plugins

    async def save(self, plugins: Mapping[str, DevicePluginRecord]) -> None:
        """If they changed. What cannot be written is said once, and tried again at each call."""
        # One after the other: they write the same draft.
        async with self._writing:
            if plugins == self._saved:
                return
            records = DevicePluginRecords(plugins=plugins)
            data = msgspec.json.format(msgspec.json.encode(records, order="sorted"), indent=1)
            try:
                await _to_the_end(asyncio.to_thread(write_atomically, self.path, data))
            except OSError as error:
                if self._trouble != str(error):
                    LOG.error("device plugins not written", file=str(self.path), error=str(error))
                self._trouble = str(error)
                return
            self._saved, self._trouble = plugins, ""

    def _set_aside(self, why: str) -> None:
        names = (self.path.with_name(f"{FILE}.corrupt-{at}") for at in count(1))
        aside = next(each for each in names if not each.exists())
        self.path.rename(aside)
        LOG.error("device plugins set aside, starting without", file=str(aside), reason=why)


async def _to_the_end(writing: Coroutine[Any, Any, None]) -> None:
    """Also if whoever waits is stopped: threads are not, and the next one writes the same draft."""
    task = asyncio.create_task(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
