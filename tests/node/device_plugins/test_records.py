"""Registrations on disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dovetail.node.common.device_plugins import PluginDevice, PluginOptions
from dovetail.node.device_plugins.records import DevicePluginRecord, RecordFile

LONG = 60.0


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


async def test_who_is_stopped_while_it_writes_is_not_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, going_on, writing = threading.Event(), threading.Event(), list[bytes]()

    def write(path: Path, data: bytes) -> None:
        writing.append(data)
        begun.set()
        going_on.wait(LONG)
        writing.remove(data)

    monkeypatch.setattr("dovetail.node.device_plugins.records.write_atomically", write)
    file = RecordFile(tmp_path)
    first = asyncio.create_task(file.save({"vendor.com/a": record("a.sock")}))
    await asyncio.to_thread(begun.wait, LONG)
    first.cancel()
    second = asyncio.create_task(file.save({"vendor.com/b": record("b.sock")}))
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(writing) == 1
    going_on.set()
    await second
    assert first.cancelled()
    assert not writing
