"""The device plugin of docs/writing-a-plugin.md, as a process of its own, registered and used."""

from __future__ import annotations

import sys
from pathlib import Path

from dovetail.node.device_plugins.manager import DevicePluginManager
from dovetail.node.sdk.device_plugin import DevicePluginServer, DevicePluginService, device
from dovetail.node.wire.device_plugin import (
    ContainerAllocateResponse,
    Device,
    DevicePluginOptions,
)
from tests.support.loops import eventually
from tests.support.paths import ROOT
from tests.support.processes import Process

SOURCE = Path(__file__).with_name("example_device_plugin.py")
PAGE = ROOT / "docs/writing-a-plugin.md"
LONG = 60.0


def test_the_page_shows_the_example_as_it_is() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    assert f"```python\n{source}```" in PAGE.read_text(encoding="utf-8")


async def test_the_example_gives_out_slots_and_wipes_them(directory: Path) -> None:
    slots, plugins = directory / "slots", directory / "plugins"
    plugins.mkdir()
    with Process([sys.executable, SOURCE, slots, plugins], directory / "log"):
        manager = DevicePluginManager(plugins, directory, period=0.05)
        await manager.start()
        try:
            await eventually(lambda: (found := manager.of("example.com/slot")) and found.up, LONG)
            plugin = manager.of("example.com/slot")
            assert plugin
            assert plugin.options.deallocates
            assert {id_: each.numa_nodes for id_, each in plugin.devices.items()} == {
                "slot:0": (0,),
                "slot:1": (1,),
            }
            given = await plugin.allocate(["slot:1"])
            assert given.envs == {"SLOTS": "slot:1"}
            assert [each.host_path for each in given.mounts] == [str(slots / "slot:1")]
            (slots / "slot:1" / "left").write_text("over")
            await plugin.deallocate(["slot:1"])
            assert not list((slots / "slot:1").iterdir())
        finally:
            await manager.stop()


class Lamp(DevicePluginService):
    """One device that goes on and off; prefers what must be, asks to hear of starts."""

    def __init__(self) -> None:
        super().__init__(
            "example.com/lamp",
            DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True),
        )
        self.on = True
        self.started: list[str] = []

    def devices(self) -> list[Device]:
        return [device("lamp", healthy=self.on), device("other")]

    async def allocate(self, ids: object) -> ContainerAllocateResponse:
        return ContainerAllocateResponse(envs={"LAMPS": str(ids)})

    async def pre_start(self, ids: object) -> None:
        self.started.append(str(ids))


async def test_changes_are_told_and_sockets_made_anew(directory: Path) -> None:
    lamp = Lamp()
    server = DevicePluginServer(lamp, directory, period=0.05)
    await server.start()
    manager = DevicePluginManager(directory, directory, period=0.05)
    await manager.start()
    try:
        await eventually(lambda: (found := manager.of(lamp.resource)) and found.up, LONG)
        plugin = manager.of(lamp.resource)
        assert plugin
        lamp.on = False
        lamp.changed()
        await eventually(lambda: not plugin.devices["lamp"].healthy, LONG)
        assert plugin.devices["other"].healthy
        await plugin.pre_start(["other"])
        assert lamp.started == ["('other',)"]
        assert await plugin.preferred(["lamp", "other"], ["other"], 1) == ("other",)
        # As a kubelet does that starts.
        lamp.on = True
        server.socket.unlink()
        await eventually(lambda: plugin.up and plugin.devices["lamp"].healthy, LONG)
    finally:
        await manager.stop()
        await server.stop()
    assert not server.socket.exists()
