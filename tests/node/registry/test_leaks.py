"""Plugins that come and go, well or badly behaved, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from dovetail.node.common.ports import PluginError
from dovetail.node.wire.resource_plugin import ALLOCATE, ResourceRequest
from tests.node.registry.rig import HASTY, Pinner, is_up, plugin_at, registry_of
from tests.support.loops import eventually


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


async def test_plugins_that_come_and_go(directory: Path) -> None:
    async with registry_of(directory, deadlines=HASTY) as registry:

        async def come_and_go(at: int) -> None:
            async with plugin_at(directory / "cpu.sock", Pinner()) as server:
                await eventually(lambda: is_up(registry))
                plugin = registry.of("cpu")
                assert plugin
                with pytest.raises(PluginError):
                    await plugin.call(ALLOCATE, ResourceRequest(pod_uid="uid-1", pod_name="other"))
                if at % 2:
                    server.inode = None  # It dies and leaves its socket.
            await eventually(lambda: not is_up(registry))

        for at in range(10):
            await come_and_go(at)
        await eventually(lambda: not registry.closing)
        gc.collect()
        tasks, files = len(asyncio.all_tasks()), open_files()
        for at in range(40):
            await come_and_go(at)
        await eventually(lambda: not registry.closing)
        gc.collect()
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        assert open_files() <= files + 2
        assert len(registry.all()) == 1
