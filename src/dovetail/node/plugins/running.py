"""A plugin as a process (`dovetail agent plugin`): socket, state, role file, signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import structlog

from dovetail.node import topology
from dovetail.node.plugins.common import role_file
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.plugins.common.serving import RolePlugin
from dovetail.node.plugins.common.store import PluginStore
from dovetail.node.plugins.cpu.plugin import CpuPlugin
from dovetail.node.plugins.memory.plugin import MemoryPlugin
from dovetail.node.plugins.nic.plugin import NicPlugin
from dovetail.node.plugins.watch import WISHES, PoolWatch, RoleWatch, keep_looking
from dovetail.node.sdk.serving import serve
from dovetail.node.topology import Machine

LOG = structlog.get_logger("dovetail.node.plugins")

KINDS: Mapping[str, Callable[..., RolePlugin[Any]]] = {
    "cpu": CpuPlugin,
    "memory": MemoryPlugin,
    "nic": NicPlugin,
}

RESOURCES = {"cpu": "cpu", "memory": "memory", "nic": "NIC"}
"""What each registers for, if nothing else is said."""


class PluginSetup(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    resource: str
    roles: Path
    socket_directory: Path
    state_directory: Path
    sysfs: Path
    proc: Path
    period: float
    """Seconds between looks at files and load."""

    @property
    def socket(self) -> Path:
        return self.socket_directory / f"{file_name(self.resource)}.sock"

    @property
    def state(self) -> Path:
        return self.state_directory / f"{file_name(self.resource)}.json"


def file_name(resource: str) -> str:
    """Resources of vendors have a slash in their names."""
    return resource.replace("/", "_")


def prepare(setup: PluginSetup) -> RolePlugin[Any]:
    """Raises BadSysfs, BadRoles, NotKept or OSError."""
    machine = topology.read(setup.sysfs, proc=setup.proc)
    book = role_file.read(setup.roles, machine)
    for each in (setup.state_directory, setup.socket_directory):
        each.mkdir(parents=True, exist_ok=True)
    return make_plugin(setup, machine, book)


def make_plugin(setup: PluginSetup, machine: Machine, book: RoleBook) -> RolePlugin[Any]:
    return KINDS[setup.kind](machine, book, PluginStore(setup.state), resource=setup.resource)


async def run(setup: PluginSetup, plugin: RolePlugin[Any]) -> None:
    """Until SIGTERM or SIGINT; SIGHUP has the file of roles read again. Raises BadSocket."""
    stop = asyncio.Event()
    roles = RoleWatch(plugin, setup.roles)
    watches: list[RoleWatch | PoolWatch] = [roles]
    if isinstance(plugin, CpuPlugin):
        watches.append(PoolWatch(plugin, setup.state_directory / WISHES, setup.proc))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    loop.add_signal_handler(signal.SIGHUP, roles.asked.set)
    looking = asyncio.create_task(keep_looking(watches, setup.period))
    # It never ends but by a fault: better a restart than a plugin that has stopped to look.
    looking.add_done_callback(lambda _: stop.set())
    LOG.info("serving", resource=plugin.resource, socket=str(setup.socket))
    try:
        await serve(plugin, setup.socket, stop)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
