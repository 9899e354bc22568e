"""The agent tells which devices its node has, and tells again when they change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dovetail.core.device import Device, PluginOrigin
from dovetail.core.errors import DovetailError
from dovetail.node.agent.device_publisher import BURST, UNKNOWN_SECONDS, DevicePublisher
from dovetail.node.agent.settings import AgentSettings, DeviceSettings
from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.topology import Hugepages, Nic
from dovetail.node.topology.synthetic import synthetic
from dovetail.node.topology.writer import write
from tests.node.plugins.rig import spec_machine
from tests.node.report.listed import ListedPlugin

GPU = "vendor.com/gpu"
PERIOD = 60.0


class Told:
    def __init__(self) -> None:
        self.devices: list[tuple[Device, ...]] = []
        self.failing = False
        self.tries = 0

    async def __call__(self, node: str, devices: Sequence[Device]) -> None:
        self.tries += 1
        if self.failing:
            raise DovetailError("no API server")
        assert node == "n1"
        self.devices.append(tuple(devices))

    @property
    def names(self) -> list[list[str]]:
        return [[each.name for each in told if each.kind == "nic"] for told in self.devices]


class Watched:
    """A publisher, and the world that it looks at."""

    def __init__(self, directory: Path, *, properties: Path | None = None) -> None:
        self.told, self.now = Told(), 0.0
        self.plugins: list[ListedPlugin] = []
        self.delivered: set[str] = set()
        about = DeviceSettings(
            publish=True, node="n1", properties_file=None if properties is None else str(properties)
        )
        self._publisher = DevicePublisher(
            AgentSettings(sysfs=str(directory / "sys"), devices=about),
            self.told,
            plugins=lambda: self.plugins,
            delivers=lambda each: each in self.delivered,
            clock=lambda: self.now,
        )

    async def look(self, after: float = 1.0) -> None:
        self.now += after
        await self._publisher.look()


def put(directory: Path, *nics: str) -> None:
    write(spec_machine(tuple(Nic(name=name, numa=0, speed=25_000) for name in nics)), directory)


async def test_a_node_is_called_as_its_kubelet_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "N1")
    put(tmp_path, "eth0")
    told = Told()
    about = AgentSettings(sysfs=str(tmp_path / "sys"), devices=DeviceSettings(publish=True))
    await DevicePublisher(about, told).look()
    assert told.names == [["eth0"]]


async def test_devices_are_told_once_and_again_when_they_change(tmp_path: Path) -> None:
    put(tmp_path, "eth0")
    watched = Watched(tmp_path)
    await watched.look()
    await watched.look()
    put(tmp_path, "eth0", "eth1")
    await watched.look()
    assert watched.told.names == [["eth0"]]
    await watched.look(PERIOD)
    assert watched.told.names == [["eth0"], ["eth0", "eth1"]]


async def test_a_node_that_was_made_anew_is_told_again(tmp_path: Path) -> None:
    put(tmp_path, "eth0")
    watched = Watched(tmp_path)
    await watched.look()
    await watched.look(PERIOD)
    assert watched.told.names == [["eth0"], ["eth0"]]


async def test_what_could_not_be_told_is_told_later_and_not_all_the_time(tmp_path: Path) -> None:
    put(tmp_path, "eth0")
    watched = Watched(tmp_path)
    watched.told.failing = True
    for _ in range(100):
        await watched.look()
    assert 4 <= watched.told.tries <= 12
    watched.told.failing = False
    await watched.look(PERIOD)
    assert watched.told.names == [["eth0"]]


async def test_plugins_are_looked_at_each_time_with_what_a_file_says(tmp_path: Path) -> None:
    put(tmp_path)
    file = tmp_path / "p.yaml"
    file.write_text('vendor.com/gpu: {"a*": {memory: 80G}}')
    watched = Watched(tmp_path, properties=file)
    await watched.look()
    watched.plugins.append(
        ListedPlugin(GPU, PluginDevice("a1", numa_nodes=(0,)), PluginDevice("b"))
    )
    await watched.look()
    watched.plugins[0].devices["b"] = PluginDevice("b", healthy=False)
    await watched.look()
    found = [each for each in watched.told.devices[-1] if each.kind == GPU]
    assert [(each.origin, each.healthy, each.properties) for each in found] == [
        (PluginOrigin(GPU, "a1"), True, {"memory": "80G", "numa": "0"}),
        (PluginOrigin(GPU, "b"), False, {}),
    ]
    assert len(watched.told.devices) == 3


async def test_a_device_that_flaps_is_told_of_now_and_then_and_as_it_ends(tmp_path: Path) -> None:
    put(tmp_path)
    watched = Watched(tmp_path)
    plugin = ListedPlugin(GPU, PluginDevice("a"))
    watched.plugins.append(plugin)
    for number in range(50):
        plugin.devices["a"] = PluginDevice("a", healthy=bool(number % 2))
        await watched.look()
    assert watched.told.tries <= BURST + 50 / 5 + 1
    plugin.devices["a"] = PluginDevice("a", healthy=False)
    await watched.look(10)
    (last,) = [each for each in watched.told.devices[-1] if each.kind == GPU]
    assert not last.healthy


async def test_a_kubelet_that_has_not_said_yet_what_it_gave_is_waited_for(tmp_path: Path) -> None:
    put(tmp_path)
    watched = Watched(tmp_path)
    plugin = ListedPlugin(GPU, PluginDevice("a"))
    plugin.held_elsewhere_unknown = "it has not been asked yet"
    watched.plugins.append(plugin)
    await watched.look()
    assert watched.told.devices == []
    plugin.held_elsewhere_unknown = ""
    await watched.look()
    plugin.held_elsewhere_unknown = "its checkpoint cannot be read"
    await watched.look()
    await watched.look(UNKNOWN_SECONDS)
    told = [each.healthy for devices in watched.told.devices for each in devices]
    assert told == [True, False]


async def test_nics_and_pages_have_an_origin_while_a_plugin_delivers_them(tmp_path: Path) -> None:
    machine = synthetic(1, 2, 2, 1, hugepages={2 << 20: Hugepages(8, 8)})
    write(machine, tmp_path)
    watched = Watched(tmp_path)
    await watched.look()
    assert {each.origin for each in watched.told.devices[-1]} <= {None}
    watched.delivered = {"nic", "hugepages-2Mi"}
    await watched.look()
    origins = {each.origin for each in watched.told.devices[-1]}
    assert PluginOrigin("hugepages-2Mi", "numa1") in origins
    assert None not in origins
