"""A plugin on its socket: there when it answers, made again when deleted, gone when it stops."""

from __future__ import annotations

import asyncio
import os
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from dovetail.node.sdk.plugin import ResourcePlugin, allocation_for, hints_for
from dovetail.node.sdk.serving import BadSocket, PluginServer, inode_of, serve
from dovetail.node.wire import associated_devices, registration, resource_plugin
from dovetail.node.wire.registration import GET_INFO, InfoRequest, PluginInfo
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    ContainerType,
    ListOfTopologyHints,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourceRequest,
    TopologyHint,
)
from dovetail.wire import rpc
from dovetail.wire.rpc import Method
from tests.support.loops import eventually


class Slow(ResourcePlugin):
    def __init__(self) -> None:
        super().__init__("cpu")
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        self.asked.set()
        await self.go_on.wait()
        return allocation_for(request, {})


@asynccontextmanager
async def served(
    socket: Path, plugin: ResourcePlugin | None = None, period: float = 0.05
) -> AsyncIterator[PluginServer]:
    server = PluginServer(plugin or ResourcePlugin("cpu"), socket, period=period)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def ask(socket: Path, method: Method[Any, Any], question: Any) -> Any:
    channel = rpc.connect(str(socket))
    try:
        return await rpc.call(channel, method, question, 10)
    finally:
        await channel.close()


async def test_it_tells_who_it_is(directory: Path) -> None:
    async with served(directory / "cpu.sock"):
        info = await ask(directory / "cpu.sock", GET_INFO, InfoRequest())
        assert info == PluginInfo(
            type="ResourcePlugin", name="cpu", supported_versions=("v1alpha1",)
        )
        assert os.listdir(directory) == ["cpu.sock"]  # noqa: PTH208


async def test_every_method_of_both_services_is_answered(directory: Path) -> None:
    methods = [
        each
        for module in (registration, resource_plugin, associated_devices)
        for each in vars(module).values()
        if isinstance(each, Method) and each is not resource_plugin.REGISTER
    ]
    refused = set()
    async with served(directory / "cpu.sock"):
        for each in methods:
            try:
                await ask(directory / "cpu.sock", each, each.question())
            except grpc.aio.AioRpcError as error:
                refused.add((each.name, error.code().name))
    assert refused == {
        ("Allocate", "INTERNAL"),
        ("GetPodTopologyHints", "UNIMPLEMENTED"),
        ("AllocateForPod", "UNIMPLEMENTED"),
        ("GetAssociatedDeviceTopologyHints", "UNIMPLEMENTED"),
        ("UpdateAllocatableAssociatedDevices", "UNIMPLEMENTED"),
        ("AllocateAssociatedDevice", "UNIMPLEMENTED"),
    }


async def test_a_socket_that_is_deleted_is_made_again(directory: Path) -> None:
    socket = directory / "cpu.sock"
    async with served(socket):
        for _ in range(3):
            socket.unlink()
            await eventually(lambda: inode_of(socket))
            await ask(socket, GET_INFO, InfoRequest())


async def test_so_is_one_whose_whole_directory_was_deleted_once_that_is_back(
    directory: Path,
) -> None:
    below = directory / "plugins"
    below.mkdir()
    async with served(below / "cpu.sock"):
        (below / "cpu.sock").unlink()
        below.rmdir()
        await asyncio.sleep(0.2)
        below.mkdir()
        await eventually(lambda: inode_of(below / "cpu.sock"))
        await ask(below / "cpu.sock", GET_INFO, InfoRequest())


async def test_a_newer_instance_takes_the_name_and_keeps_it(directory: Path) -> None:
    socket = directory / "cpu.sock"
    async with served(socket, ResourcePlugin("older")):
        async with served(socket, ResourcePlugin("newer"), period=60):
            await asyncio.sleep(0.2)
            assert (await ask(socket, GET_INFO, InfoRequest())).name == "newer"
        await eventually(lambda: inode_of(socket))
        assert (await ask(socket, GET_INFO, InfoRequest())).name == "older"


async def test_an_older_instance_that_stops_leaves_the_newer_one_its_socket(
    directory: Path,
) -> None:
    socket = directory / "cpu.sock"
    older = PluginServer(ResourcePlugin("older"), socket)
    await older.start()
    async with served(socket, ResourcePlugin("newer")):
        await older.stop()
        assert (await ask(socket, GET_INFO, InfoRequest())).name == "newer"


async def test_what_was_left_behind_by_one_that_died_is_replaced(directory: Path) -> None:
    socket = directory / "cpu.sock"
    with sockets.socket(sockets.AF_UNIX) as dead:
        dead.bind(str(socket))
    async with served(socket):
        await ask(socket, GET_INFO, InfoRequest())


async def test_when_it_stops_it_answers_what_it_was_asked(directory: Path) -> None:
    plugin, stop = Slow(), asyncio.Event()
    socket = directory / "cpu.sock"
    serving = asyncio.create_task(serve(plugin, socket, stop))
    await eventually(lambda: inode_of(socket))
    asking = asyncio.create_task(ask(socket, ALLOCATE, ResourceRequest(pod_uid="uid-1")))
    await plugin.asked.wait()
    stop.set()
    await eventually(lambda: not inode_of(socket))
    plugin.go_on.set()
    assert (await asking).pod_uid == "uid-1"
    await serving
    assert os.listdir(directory) == []  # noqa: PTH208


async def test_a_path_that_is_too_long_is_told_before_anything_is_made(directory: Path) -> None:
    socket = directory / ("x" * 100)
    with pytest.raises(BadSocket, match="the path may have 107 bytes, not"):
        await PluginServer(ResourcePlugin("cpu"), socket).start()


async def test_a_directory_that_is_missing_is_told(directory: Path) -> None:
    with pytest.raises(BadSocket, match=r"cannot serve at .*absent/cpu.sock"):
        await PluginServer(ResourcePlugin("cpu"), directory / "absent" / "cpu.sock").start()


async def test_a_name_that_is_taken_by_a_directory_is_told_and_nothing_stays(
    directory: Path,
) -> None:
    (directory / "cpu.sock").mkdir()
    with pytest.raises(BadSocket, match=r"cannot serve at .*/cpu.sock: Is a directory"):
        await PluginServer(ResourcePlugin("cpu"), directory / "cpu.sock").start()
    assert os.listdir(directory) == ["cpu.sock"]  # noqa: PTH208


REQUEST = ResourceRequest(
    pod_uid="uid-1",
    pod_namespace="default",
    pod_name="web",
    container_name="main",
    container_type=ContainerType.MAIN,
    container_index=2,
    pod_role="online",
    pod_type="dense",
    resource_name="cpu",
    labels={"a": "1"},
    annotations={"b": "2"},
    native_qos_class="Burstable",
)


def test_answers_repeat_whom_they_are_for() -> None:
    hinted = hints_for(REQUEST, {"cpu": [TopologyHint(nodes=(0,))], "memory": []})
    given = allocation_for(REQUEST, {"cpu": ResourceAllocationInfo(allocated_quantity=1)})
    for name in ResourceHintsResponse.__struct_fields__:
        if name != "resource_hints":
            assert getattr(hinted, name) == getattr(REQUEST, name) == getattr(given, name)
    assert hinted.resource_hints == {
        "cpu": ListOfTopologyHints(hints=(TopologyHint(nodes=(0,)),)),
        "memory": ListOfTopologyHints(),
    }
