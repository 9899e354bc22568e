"""The NRI plugin against a runtime that the test plays, byte by byte."""

from __future__ import annotations

import asyncio
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dovetail.node.pods import Sandbox
from dovetail.node.ports import Rejected, RuntimeRefused
from dovetail.node.runtime import nri as back_end
from dovetail.node.runtime.nri import NriRuntime
from dovetail.node.settings import Settings
from dovetail.node.wire import nri
from dovetail.node.wire.codec import Message, decode, encode
from dovetail.node.wire.resource_plugin import DeviceSpec
from dovetail.node.wire.ttrpc import Request, Response
from tests.node.runtime.gates import Scripted

POD = nri.PodSandbox(id="p", name="pod", uid="u", namespace="n")
CONTAINER = nri.Container(id="c", pod_sandbox_id="p", name="c1")
FAILED_PRECONDITION, UNIMPLEMENTED, UNAVAILABLE = 9, 12, 14


class Played:
    """One connection, from the runtime's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._number = -1

    async def message(self) -> tuple[int, int, int, bytes]:
        """Connection, number, kind, data; which come in two frames."""
        connection, length = struct.unpack(">II", await self.reader.readexactly(8))
        assert length == 10
        size, number, kind, flags = struct.unpack(">IIBB", await self.reader.readexactly(10))
        assert flags == 0
        again, length = struct.unpack(">II", await self.reader.readexactly(8))
        assert (again, length) == (connection, size)
        return connection, number, kind, await self.reader.readexactly(size)

    def send(self, connection: int, number: int, kind: int, data: bytes) -> None:
        whole = struct.pack(">IIBB", len(data), number, kind, 0) + data
        # Frames may end anywhere.
        for part in (whole[:3], whole[3:]):
            self.writer.write(struct.pack(">II", connection, len(part)) + part)

    async def registered(self) -> nri.RegisterPluginRequest:
        connection, number, kind, data = await self.message()
        request = decode(Request, data)
        assert (connection, kind) == (2, 1)
        service = "nri.pkg.api.v1alpha1.Runtime"
        assert (request.service, request.method) == (service, "RegisterPlugin")
        self.send(2, number, 2, encode(Response()))
        return decode(nri.RegisterPluginRequest, request.payload)

    async def call(self, method: str, question: Message) -> Response:
        self._number += 2
        request = Request(
            service="nri.pkg.api.v1alpha1.Plugin", method=method, payload=encode(question)
        )
        self.send(1, self._number, 1, encode(request))
        connection, number, kind, data = await self.message()
        assert (connection, number, kind) == (1, self._number, 2)
        return decode(Response, data)

    async def welcome(self, *pods: nri.PodSandbox, patience: int = 0) -> None:
        await self.registered()
        await self.call("Configure", nri.ConfigureRequest(request_timeout=patience))
        await self.call("Synchronize", nri.SynchronizeRequest(pods=pods))

    async def change(self, event: nri.Event) -> Response:
        told = nri.StateChangeEvent(event=event, pod=POD, container=CONTAINER)
        return await self.call("StateChange", told)


Connections = asyncio.Queue[Played]
Test = Callable[[Connections, NriRuntime], Awaitable[None]]


@asynccontextmanager
async def plugin(gate: Scripted) -> AsyncIterator[tuple[Connections, NriRuntime]]:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    connections: Connections = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connections.put_nowait(Played(reader, writer))

    server = await asyncio.start_unix_server(accept, directory / "nri.sock")
    runtime = NriRuntime(directory / "nri.sock", gate, name="me", index=7)
    await runtime.start()
    try:
        yield connections, runtime
    finally:
        await runtime.stop()
        server.close()
        for writer in writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        shutil.rmtree(directory)


def playing(gate: Scripted, test: Test) -> None:
    async def go() -> None:
        async with asyncio.timeout(30), plugin(gate) as (connections, runtime):
            await test(connections, runtime)

    asyncio.run(go())


def test_registers_and_subscribes() -> None:
    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        assert await played.registered() == nri.RegisterPluginRequest(
            plugin_name="me", plugin_idx="07"
        )
        answer = await played.call("Configure", nri.ConfigureRequest())
        events = decode(nri.ConfigureResponse, answer.payload).events
        for event in (nri.Event.RUN_POD_SANDBOX, nri.Event.CREATE_CONTAINER):
            assert events & 1 << event - 1

    playing(Scripted(), test)


def test_nothing_is_known_before_all_parts_of_the_list_came() -> None:
    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.registered()
        first = nri.SynchronizeRequest(pods=(POD,), more=True)
        answer = await played.call("Synchronize", first)
        assert decode(nri.SynchronizeResponse, answer.payload).more
        with pytest.raises(RuntimeRefused, match="not connected"):
            await runtime.sandboxes()
        await played.call("Synchronize", nri.SynchronizeRequest(containers=(CONTAINER,)))
        assert [each.uid for each in await runtime.sandboxes()] == ["u"]
        assert [each.container for each in await runtime.containers()] == ["c1"]

    playing(Scripted(), test)


@pytest.mark.parametrize("own_method", [False, True], ids=["StateChange", "RunPodSandbox"])
def test_pod_is_admitted_or_not(own_method: bool) -> None:
    gate = Scripted()

    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome()

        async def run_pod() -> Response:
            if own_method:
                return await played.call("RunPodSandbox", nri.PodEvent(pod=POD))
            return await played.change(nri.Event.RUN_POD_SANDBOX)

        gate.rejects = Rejected("topology_affinity", "no room")
        refused = await run_pod()
        assert refused.status is not None
        assert refused.status.code == FAILED_PRECONDITION
        assert refused.status.message == "dovetail: topology_affinity: no room"
        assert not await runtime.sandboxes()
        gate.rejects = None
        assert not (await run_pod()).status
        assert [each.uid for each in await runtime.sandboxes()] == ["u"]

    playing(gate, test)


def test_slow_admission_is_refused_in_good_time_and_goes_on() -> None:
    class Slow(Scripted):
        async def admit(self, sandbox: Sandbox) -> None:
            await asyncio.sleep(0.4)
            await super().admit(sandbox)

        async def gone(self, sandbox: Sandbox) -> None:
            await super().gone(sandbox)
            self.told.set()

        told = asyncio.Event()

    gate = Slow()

    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome(patience=200)
        async with asyncio.timeout(0.2):
            refused = await played.change(nri.Event.RUN_POD_SANDBOX)
        assert refused.status is not None
        assert refused.status.code == UNAVAILABLE
        assert gate.admitted == []
        await asyncio.wait_for(gate.told.wait(), 5)
        assert [each.uid for each in gate.admitted] == ["u"], "told afterwards to look at it"

    playing(gate, test)


def test_device_that_is_none_refuses_the_container() -> None:
    device = DeviceSpec(container_path="/dev/x", host_path="/etc/hostname", permissions="r")

    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome(POD)
        event = nri.PodEvent(pod=POD, container=CONTAINER)
        refused = await played.call("CreateContainer", event)
        assert refused.status is not None
        assert refused.status.message == "/etc/hostname is no device"
        assert not await runtime.containers()

    playing(Scripted(c1=Settings(devices=(device,))), test)


def test_method_that_does_not_exist_is_told() -> None:
    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome()
        answer = await played.call("Fly", nri.Empty())
        assert answer.status is not None
        assert answer.status.code == UNIMPLEMENTED

    playing(Scripted(), test)


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack(">II", 1, 2**31),
        struct.pack(">IIIIBB", 1, 10, 2**31, 1, 1, 0),
        struct.pack(">IIIIBB", 1, 10, 0, 1, 99, 0),
        struct.pack(">IIIIBB", 1, 13, 3, 1, 1, 0) + b"\xff\xff\xff",
    ],
    ids=["frame too long", "message too long", "unknown kind", "no request"],
)
def test_garbage_ends_the_connection_and_there_is_a_new_one(garbage: bytes) -> None:
    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome(POD)
        assert await runtime.sandboxes()
        played.writer.write(garbage)
        assert await played.reader.read() == b""
        again = await connections.get()
        with pytest.raises(RuntimeRefused, match="not connected"):
            await runtime.sandboxes()
        await again.welcome()
        assert not await runtime.sandboxes()

    playing(Scripted(), test)


def test_update_that_is_refused_or_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_end, "DEADLINE", 0.2)

    async def test(connections: Connections, runtime: NriRuntime) -> None:
        played = await connections.get()
        await played.welcome(POD)
        with pytest.raises(RuntimeRefused, match="no answer within"):
            await runtime.update("c", Settings(cpus="0"))
        await played.message()
        updating = asyncio.create_task(runtime.update("c", Settings(cpus="0")))
        _, number, _, data = await played.message()
        question = decode(nri.UpdateContainersRequest, decode(Request, data).payload)
        failed = nri.UpdateContainersResponse(failed=question.update)
        played.send(2, number, 2, encode(Response(payload=encode(failed))))
        with pytest.raises(RuntimeRefused, match="container c was not updated"):
            await updating

    playing(Scripted(), test)
