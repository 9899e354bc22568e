"""The agent tells which devices its machine has, and tells again when they change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.node.agent.device_publisher import DevicePublisher
from dovetail.node.agent.settings import AgentSettings, DeviceSettings
from dovetail.node.topology import Nic
from dovetail.node.topology.writer import write
from tests.node.plugins.rig import spec_machine


class Told:
    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.failing = False

    async def __call__(self, node: str, devices: Sequence[Device]) -> None:
        if self.failing:
            raise DovetailError("no API server")
        assert node == "n1"
        self.names.append([device.name for device in devices if device.kind == "nic"])


def watching(directory: Path) -> tuple[DevicePublisher, Told]:
    told = Told()
    config = AgentSettings(
        sysfs=str(directory / "sys"), devices=DeviceSettings(publish=True, node="n1")
    )
    return DevicePublisher(config, told), told


def put(directory: Path, *nics: str) -> None:
    write(spec_machine(tuple(Nic(name=name, numa=0, speed=25_000) for name in nics)), directory)


async def test_devices_are_told_once_and_again_when_they_change(tmp_path: Path) -> None:
    put(tmp_path, "eth0")
    devices, told = watching(tmp_path)
    await devices.look()
    await devices.look()
    put(tmp_path, "eth0", "eth1")
    await devices.look()
    assert told.names == [["eth0"], ["eth0", "eth1"]]


async def test_what_could_not_be_told_is_told_later(tmp_path: Path) -> None:
    put(tmp_path, "eth0")
    devices, told = watching(tmp_path)
    told.failing = True
    await devices.look()
    told.failing = False
    await devices.look()
    assert told.names == [["eth0"]]
