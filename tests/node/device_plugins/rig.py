"""A device manager in a hurry, foreign plugins as processes, and a kubelet that can be asked.

The kubelet here is one by its sockets and its checkpoint only; the real one is in
tests/node/kubelet.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from dovetail.node.device_plugins.device_plugin_status import DevicePluginStatus
from dovetail.node.device_plugins.limits import DevicePluginDeadlines
from dovetail.node.device_plugins.manager import DevicePluginManager
from dovetail.node.device_plugins.plugin import KnownDevicePlugin
from tests.node.wire import tables
from tests.support.loops import eventually
from tests.support.node import device_plugin_program
from tests.support.node.device_plugin_program import API
from tests.support.paths import ROOT
from tests.support.processes import Process

RESOURCE = "vendor.com/gpu"
HASTY = DevicePluginDeadlines(call=2.0, first_list=2.0)
"""For tests in which a plugin hangs; the others are not to fail because the machine is busy."""

HASTY_ALLOCATE = DevicePluginDeadlines(allocate=2.0)

LONG = 60.0
POD_RESOURCES = tables.classes(tables.POD_RESOURCES)


class PluginProcess(Process):
    """The plugin of somebody else, and what it was asked."""

    def __init__(self, directory: Path, *words: object, resource: str = RESOURCE) -> None:
        name = resource.replace("/", "-")
        self.calls_file = directory.parent / f"{name}.calls"
        self.control_file = directory.parent / f"{name}.control"
        super().__init__(
            [
                *(sys.executable, "-m", "tests.support.node.device_plugin_program"),
                *("--directory", directory, "--resource", resource),
                *("--log", self.calls_file, "--control", self.control_file),
                *words,
            ],
            directory.parent / f"{name}.log",
            cwd=ROOT,
        )

    def calls(self, call: str = "") -> list[dict[str, Any]]:
        return device_plugin_program.calls(self.calls_file, call)

    def control(self, **behaviour: Any) -> None:
        draft = self.control_file.with_suffix(".draft")
        draft.write_text(json.dumps(behaviour))
        draft.replace(self.control_file)


@asynccontextmanager
async def manager_of(directory: Path, **more: Any) -> AsyncIterator[DevicePluginManager]:
    """Its sockets are in `plugins`, its state beside that, the kubelet's sockets in `kubelet`."""
    manager = made(directory, **more)
    await manager.start()
    try:
        yield manager
    finally:
        await manager.stop()


def made(directory: Path, **more: Any) -> DevicePluginManager:
    (directory / "plugins").mkdir(exist_ok=True)
    (directory / "state").mkdir(exist_ok=True)
    return DevicePluginManager(
        directory / "plugins",
        directory / "state",
        kubelet_directory=directory / "kubelet",
        kubelet_pod_resources=directory / "pods.sock",
        period=0.02,
        **more,
    )


@contextmanager
def plugin_in(
    directory: Path,
    *words: object,
    resource: str = RESOURCE,
    devices: Iterable[str] = ("a:0@0", "b:0@1"),
) -> Iterator[PluginProcess]:
    (directory / "plugins").mkdir(exist_ok=True)
    listed = [word for each in devices for word in ("--device", each)]
    with PluginProcess(directory / "plugins", *listed, *words, resource=resource) as process:
        yield process


def plugin_of(manager: DevicePluginManager, resource: str = RESOURCE) -> KnownDevicePlugin:
    found = manager.of(resource)
    assert found, f"no plugin for {resource}"
    return found


def is_up(manager: DevicePluginManager, resource: str = RESOURCE) -> bool:
    found = manager.of(resource)
    return found is not None and found.up


async def until_up(manager: DevicePluginManager, resource: str = RESOURCE) -> KnownDevicePlugin:
    await eventually(lambda: is_up(manager, resource), LONG)
    return plugin_of(manager, resource)


def status(manager: DevicePluginManager, resource: str = RESOURCE) -> DevicePluginStatus:
    return next(each for each in manager.statuses() if each.resource == resource)


async def until(true: Any) -> None:
    await eventually(true, LONG)


class FakeKubelet:
    """Registers whoever calls, follows their lists, and gives devices to pods as it is told."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.pods_socket = directory / "kubelet", directory / "pods.sock"
        self.registered: list[Any] = []
        self.lists: list[dict[str, str]] = []
        """Health by ID, each list that came in."""
        self.pods: dict[str, list[str]] = {}
        """IDs by pod."""
        self.hidden: list[str] = []
        """IDs of init containers: only the checkpoint has them."""
        self.written: list[str] = []
        self.garbage = ""
        """In place of its checkpoint, whenever it is written: each list that comes in does that."""
        self.channel: grpc.aio.Channel | None = None
        self.following: asyncio.Task[None] | None = None
        self.servers: list[grpc.aio.Server] = []

    async def start(self) -> None:
        """As the real one: all sockets in its directory go first."""
        self.directory.mkdir(exist_ok=True)
        for each in self.directory.iterdir():
            if each.is_socket():
                each.unlink()
        self.pods_socket.unlink(missing_ok=True)
        self.write()
        await self._serve(self.pods_socket, "v1.PodResourcesLister", "List", self._list)
        await self._serve(
            self.directory / "kubelet.sock", "v1beta1.Registration", "Register", self._register
        )

    async def _serve(self, socket: Path, service: str, name: str, answer: Any) -> None:
        server = grpc.aio.server()
        handlers: Any = {name: grpc.unary_unary_rpc_method_handler(answer)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self.servers.append(server)

    async def stop(self) -> None:
        if self.following:
            self.following.cancel()
            await asyncio.gather(self.following, return_exceptions=True)
        if self.channel:
            await self.channel.close()
        for each in self.servers:
            await each.stop(None)
        self.servers, self.following, self.channel = [], None, None

    async def _register(self, data: bytes, _: Any) -> bytes:
        request = API["RegisterRequest"].FromString(data)
        if self.following:
            self.following.cancel()
        self.channel = grpc.aio.insecure_channel(f"unix:{self.directory / request.endpoint}")
        await self.ask("GetDevicePluginOptions", API["Empty"](), "DevicePluginOptions")
        self.registered.append(request)
        self.following = asyncio.create_task(self._follow(self.channel))
        return b""

    async def _follow(self, channel: grpc.aio.Channel) -> None:
        asking: Any = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")
        stream = asking(b"")
        while isinstance(data := await stream.read(), bytes):
            found = API["ListAndWatchResponse"].FromString(data)
            self.lists.append({each.ID: each.health for each in found.devices})
            self.write()

    async def _list(self, _: bytes, __: Any) -> bytes:
        answer = POD_RESOURCES["ListPodResourcesResponse"]()
        for name, ids in self.pods.items():
            container = answer.pod_resources.add(name=name).containers.add(name="main")
            container.devices.add(resource_name=RESOURCE, device_ids=ids)
        made: bytes = answer.SerializeToString()
        return made

    def write(self) -> None:
        """Its checkpoint, by NUMA node as the real one has it."""
        entries = [
            {
                "PodUID": name,
                "ContainerName": "main",
                "ResourceName": RESOURCE,
                "DeviceIDs": {"-1": ids},
                "AllocResp": "",
            }
            for name, ids in (*self.pods.items(), ("init", self.hidden))
        ]
        self.written = [id_ for ids in self.pods.values() for id_ in ids] + self.hidden
        document = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1}
        draft = self.directory / ".checkpoint"
        draft.write_text(self.garbage or json.dumps(document))
        draft.replace(self.directory / "kubelet_internal_checkpoint")

    async def ask(self, name: str, request: Any, answer: str) -> Any:
        assert self.channel
        asking: Any = self.channel.unary_unary(f"/v1beta1.DevicePlugin/{name}")
        return API[answer].FromString(await asking(request.SerializeToString(), timeout=LONG))

    async def allocate(self, pod: str, ids: Sequence[str]) -> Any:
        """As at an admission: Allocate, then it is written."""
        request = API["AllocateRequest"]()
        request.container_requests.add(devices_ids=ids)
        answer = await self.ask("Allocate", request, "AllocateResponse")
        self.pods[pod] = list(ids)
        self.write()
        return answer


@asynccontextmanager
async def kubelet_in(directory: Path) -> AsyncIterator[FakeKubelet]:
    kubelet = FakeKubelet(directory)
    await kubelet.start()
    try:
        yield kubelet
    finally:
        await kubelet.stop()
