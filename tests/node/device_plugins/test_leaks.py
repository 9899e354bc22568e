"""Device plugins and kubelets that come and go leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from dovetail.node.device_plugins import sharing
from dovetail.node.sdk.device_plugin import DevicePluginServer, DevicePluginService, device
from dovetail.node.wire.device_plugin import ContainerAllocateResponse, Device
from tests.node.device_plugins.rig import (
    RESOURCE,
    is_up,
    kubelet_in,
    manager_of,
    plugin_of,
    until,
)


class One(DevicePluginService):
    def devices(self) -> list[Device]:
        return [device("a")]

    async def allocate(self, ids: object) -> ContainerAllocateResponse:
        return ContainerAllocateResponse()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


async def test_plugins_and_kubelets_that_come_and_go(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "READ_SECONDS", 0.05)
    async with manager_of(directory, shared=[RESOURCE]) as manager:

        async def come_and_go() -> None:
            server = DevicePluginServer(One(RESOURCE), directory / "plugins", period=0.02)
            await server.start()
            async with kubelet_in(directory) as kubelet:
                await until(lambda: is_up(manager) and kubelet.lists)
                await plugin_of(manager).allocate(["a"])
                await plugin_of(manager).deallocate(["a"])
                await server.stop()
                await until(lambda: not is_up(manager))

        async def settled() -> tuple[int, int]:
            await until(lambda: not manager._closing)
            gc.collect()
            return len(asyncio.all_tasks()), open_files()

        for _ in range(4):
            await come_and_go()
        tasks, files = await settled()
        for _ in range(12):
            await come_and_go()
        await settled()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        # Reading the kubelet has a connection for a moment.
        await until(lambda: open_files() <= files + 4)
