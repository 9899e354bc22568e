"""Registrations on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dovetail.node.common.device_plugins import PluginDevice, PluginOptions
from dovetail.node.device_plugins.records import DevicePluginRecord, RecordFile


def record(endpoint: str, *ids: str) -> DevicePluginRecord:
    return DevicePluginRecord(
        endpoint=endpoint,
        options=PluginOptions(deallocates=True),
        devices=tuple(PluginDevice(each, healthy=False, numa_nodes=(1,)) for each in ids),
    )


async def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    saved = {"vendor.com/gpu": record("gpu.sock", "a:0", "ä")}
    await RecordFile(tmp_path).save(saved)
    assert RecordFile(tmp_path).load() == saved


async def test_the_last_of_many_at_once_stands(tmp_path: Path) -> None:
    """A registration and a list of devices come at the same time."""
    file = RecordFile(tmp_path)
    many = [{"vendor.com/gpu": record("gpu.sock", f"d{number}")} for number in range(30)]
    await asyncio.gather(*(file.save(each) for each in many))
    assert RecordFile(tmp_path).load() == many[-1]


async def test_what_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "state")
    saved = {"vendor.com/gpu": record("gpu.sock")}
    await file.save(saved)
    (tmp_path / "state").mkdir()
    await file.save(saved)
    assert RecordFile(tmp_path / "state").load() == saved
