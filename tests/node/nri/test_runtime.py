"""The NRI plugin against a runtime that the test plays, byte by byte."""

from __future__ import annotations

import asyncio
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import (
    AdmissionRejected,
    ContainerPhase,
    ObservedContainer,
    RuntimeRefused,
)
from dovetail.node.nri.adjustment import resources
from dovetail.node.nri.runtime import NriRuntime
from dovetail.node.wire import nri
from dovetail.node.wire.resource_plugin import DeviceSpec
from dovetail.node.wire.ttrpc import Request, Response
from dovetail.wire.codec import Message, decode, encode
from tests.support.node.gates import Scripted

POD = nri.PodSandbox(id="p", name="pod", uid="u", namespace="n")
CONTAINER = nri.Container(id="c", name="c1")
CHANGE = ContainerSettings(cpus="0")
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

    async def welcome(self, patience: int = 0) -> None:
        await self.registered()
        await self.call("Configure", nri.ConfigureRequest(request_timeout=patience))
        await self.call("Synchronize", nri.SynchronizeRequest())

    async def change(self, event: nri.Event) -> Response:
        told = nri.StateChangeEvent(event=event, pod=POD, container=CONTAINER)
        return await self.call("StateChange", told)

    async def updated(self, runtime: NriRuntime, *, failed: bool = False) -> None:
        """Have a container updated, and do it or not."""
        updating = asyncio.create_task(runtime.update("c", CHANGE))
        _, number, _, data = await self.message()
        question = decode(nri.UpdateContainersRequest, decode(Request, data).payload)
        assert [each.container_id for each in question.update] == ["c"]
        answer = nri.UpdateContainersResponse(failed=question.update if failed else ())
        self.send(2, number, 2, encode(Response(payload=encode(answer))))
        await updating


class Seen:
    """What CRI shows."""

    async def sandboxes(self) -> Sequence[Sandbox]:
        return [Sandbox(uid="seen", namespace="n", name="pod", id="s")]

    async def containers(self) -> Sequence[ObservedContainer]:
        running = ContainerPhase.RUNNING
        return [
            ObservedContainer(
                id="seen-c1",
                pod_uid="seen",
                container="c1",
                state=running,
                applied=ContainerSettings(),
            )
        ]

    async def update(self, id_: str, change: ContainerSettings) -> None:
        raise AssertionError("updates go by NRI")


Connections = asyncio.Queue[Played]


@asynccontextmanager
async def plugin(gate: Scripted, **timing: float) -> AsyncIterator[tuple[Connections, NriRuntime]]:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    connections: Connections = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connections.put_nowait(Played(reader, writer))

    server = await asyncio.start_unix_server(accept, directory / "nri.sock")
    runtime = NriRuntime(directory / "nri.sock", Seen(), gate, name="me", index=7, **timing)
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


@asynccontextmanager
async def playing(gate: Scripted, **timing: float) -> AsyncIterator[tuple[Connections, NriRuntime]]:
    async with asyncio.timeout(30), plugin(gate, **timing) as (connections, runtime):
        yield connections, runtime


async def test_registers_and_subscribes() -> None:
    async with playing(Scripted()) as (connections, _runtime):
        played = await connections.get()
        assert await played.registered() == nri.RegisterPluginRequest(
            plugin_name="me", plugin_idx="07"
        )
        answer = await played.call("Configure", nri.ConfigureRequest())
        events = decode(nri.ConfigureResponse, answer.payload).events
        for event in (nri.Event.RUN_POD_SANDBOX, nri.Event.CREATE_CONTAINER):
            assert events & 1 << event - 1


async def test_nothing_is_updated_before_all_parts_of_the_list_came() -> None:
    async with playing(Scripted()) as (connections, runtime):
        played = await connections.get()
        await played.registered()
        answer = await played.call("Synchronize", nri.SynchronizeRequest(more=True))
        assert decode(nri.SynchronizeResponse, answer.payload).more
        with pytest.raises(RuntimeRefused, match="not connected"):
            await runtime.update("c", CHANGE)
        answer = await played.call("Synchronize", nri.SynchronizeRequest())
        assert not decode(nri.SynchronizeResponse, answer.payload).more
        await played.updated(runtime)


async def test_what_runs_is_what_cri_shows() -> None:
    async with playing(Scripted()) as (connections, runtime):
        played = await connections.get()
        await played.welcome()
        await played.change(nri.Event.RUN_POD_SANDBOX)
        assert [each.uid for each in await runtime.sandboxes()] == ["seen"]
        assert [each.id for each in await runtime.containers()] == ["seen-c1"]


@pytest.mark.parametrize("own_method", [False, True], ids=["StateChange", "RunPodSandbox"])
async def test_pod_is_admitted_or_not(own_method: bool) -> None:
    gate = Scripted()

    async with playing(gate) as (connections, _runtime):
        played = await connections.get()
        await played.welcome()

        async def run_pod() -> Response:
            if own_method:
                return await played.call("RunPodSandbox", nri.PodEvent(pod=POD))
            return await played.change(nri.Event.RUN_POD_SANDBOX)

        gate.rejects = AdmissionRejected("topology_affinity", "no room")
        refused = await run_pod()
        assert refused.status is not None
        assert refused.status.code == FAILED_PRECONDITION
        assert refused.status.message == "dovetail: topology_affinity: no room"
        gate.rejects = None
        assert not (await run_pod()).status
        assert [(each.uid, each.id) for each in gate.admitted] == [("u", "p")]


async def test_slow_admission_is_refused_in_good_time_and_goes_on() -> None:
    class Slow(Scripted):
        async def admit_pod(self, sandbox: Sandbox) -> None:
            await asyncio.sleep(0.4)
            await super().admit_pod(sandbox)

        async def sandbox_gone(self, sandbox: Sandbox) -> None:
            await super().sandbox_gone(sandbox)
            self.told.set()

        told = asyncio.Event()

    gate = Slow()

    async with playing(gate) as (connections, _runtime):
        played = await connections.get()
        await played.welcome(patience=200)
        async with asyncio.timeout(0.2):
            refused = await played.change(nri.Event.RUN_POD_SANDBOX)
        assert refused.status is not None
        assert refused.status.code == UNAVAILABLE
        assert gate.admitted == []
        await asyncio.wait_for(gate.told.wait(), 5)
        assert [each.uid for each in gate.admitted] == ["u"], "told afterwards to look at it"


@pytest.mark.parametrize("event", [nri.Event.STOP_POD_SANDBOX, nri.Event.REMOVE_POD_SANDBOX])
async def test_gate_hears_that_a_sandbox_went(event: nri.Event) -> None:
    gate = Scripted()

    async with playing(gate) as (connections, _runtime):
        played = await connections.get()
        await played.welcome()
        assert not (await played.change(event)).status
        assert gate.left == ["u"]


async def test_container_is_adjusted_and_the_gate_hears_its_id() -> None:
    gate = Scripted(c1=CHANGE)

    async with playing(gate) as (connections, _runtime):
        played = await connections.get()
        await played.welcome()
        event = nri.PodEvent(pod=POD, container=CONTAINER)
        answer = await played.call("CreateContainer", event)
        adjust = decode(nri.CreateContainerResponse, answer.payload).adjust
        assert adjust
        assert adjust.linux == nri.LinuxContainerAdjustment(resources=resources(CHANGE))
        assert gate.made == [("u", "c1", "c")]


async def test_device_that_is_none_refuses_the_container() -> None:
    gate = Scripted()
    device = DeviceSpec(container_path="/dev/x", host_path="/etc/hostname", permissions="r")

    gate.given["c1"] = ContainerSettings(devices=(device,))
    async with playing(gate) as (connections, _runtime):
        played = await connections.get()
        await played.welcome()
        event = nri.PodEvent(pod=POD, container=CONTAINER)
        refused = await played.call("CreateContainer", event)
        assert refused.status is not None
        assert refused.status.message == "/etc/hostname is no device"
        assert gate.made == []


async def test_method_that_does_not_exist_is_told() -> None:
    async with playing(Scripted()) as (connections, _runtime):
        played = await connections.get()
        await played.welcome()
        answer = await played.call("Fly", nri.Empty())
        assert answer.status is not None
        assert answer.status.code == UNIMPLEMENTED


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
async def test_garbage_ends_the_connection_and_there_is_a_new_one(garbage: bytes) -> None:
    async with playing(Scripted()) as (connections, runtime):
        played = await connections.get()
        await played.welcome()
        await played.updated(runtime)
        played.writer.write(garbage)
        assert await played.reader.read() == b""
        again = await connections.get()
        with pytest.raises(RuntimeRefused, match="not connected"):
            await runtime.update("c", CHANGE)
        await again.welcome()
        await again.updated(runtime)


async def test_update_that_is_refused_or_not_answered() -> None:
    async with playing(Scripted(), deadline_seconds=0.2) as (connections, runtime):
        played = await connections.get()
        await played.welcome()
        with pytest.raises(RuntimeRefused, match="no answer within"):
            await runtime.update("c", CHANGE)
        await played.message()
        with pytest.raises(RuntimeRefused, match="container c was not updated"):
            await played.updated(runtime, failed=True)
