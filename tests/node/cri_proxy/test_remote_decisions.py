"""A relay between a client and a runtime that asks the agent over a socket, and outlives it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.cri_proxy.decisions import CallDecisions
from dovetail.node.cri_proxy.proxy import CriEndpoint
from dovetail.node.cri_proxy.remote_decisions import RemoteDecisions, decision_server
from dovetail.node.wire import cri
from dovetail.wire.codec import decode, encode
from tests.node.agent.cri import FakeRuntime
from tests.support.loops import eventually
from tests.support.node.gates import Scripted

POD = cri.PodSandboxConfig(
    metadata=cri.PodSandboxMetadata(name="web", uid="u", namespace="default")
)
RUN = encode(cri.RunPodSandboxRequest(config=POD))


class Relayed:
    """A runtime in memory, a relay, and an agent that comes and goes."""

    def __init__(self, directory: Path, wait: float) -> None:
        self.gate = Scripted(main=ContainerSettings(cpus="3"))
        self.runtime = FakeRuntime(directory / "r.sock")
        self.socket = directory / "d.sock"
        self.remote = RemoteDecisions(self.socket, wait)
        self.endpoint = CriEndpoint(directory / "p.sock", self.runtime.socket, self.remote.handlers)
        self.channel = grpc.aio.insecure_channel(f"unix:{directory / 'p.sock'}")
        self._decisions: CallDecisions | None = None

    async def agent(self) -> None:
        self._decisions = CallDecisions(self.runtime.socket, self.gate)
        self._decisions.start()
        self._server = decision_server(self.socket, self._decisions.handlers)
        await self._server.start()

    async def without_agent(self) -> None:
        if self._decisions:
            await self._server.stop(0)
            await self._decisions.stop()
            self._decisions = None

    async def call(self, name: str, body: bytes = b"", seconds: float = 60) -> bytes:
        asking: Any = self.channel.unary_unary(f"/{cri.SERVICE}/{name}")
        answer: bytes = await asking(body, timeout=seconds)
        return answer

    async def run(self) -> str:
        return decode(
            cri.RunPodSandboxResponse, await self.call("RunPodSandbox", RUN)
        ).pod_sandbox_id

    async def create(self, pod: str) -> str:
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="main"))
        question = cri.CreateContainerRequest(pod_sandbox_id=pod, config=config, sandbox_config=POD)
        answer = await self.call("CreateContainer", encode(question))
        return decode(cri.CreateContainerResponse, answer).container_id


@asynccontextmanager
async def relayed(wait: float = 60.0) -> AsyncIterator[Relayed]:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    found = Relayed(directory, wait)
    await found.runtime.start()
    found.remote.start()
    await found.endpoint.start()
    try:
        yield found
    finally:
        await found.channel.close()
        await found.endpoint.stop(0)
        await found.without_agent()
        await found.remote.stop()
        await found.runtime.stop()
        shutil.rmtree(directory)


async def test_calls_are_decided_as_in_one_process() -> None:
    async with relayed() as relay:
        await relay.agent()
        pod = await relay.run()
        assert [each.uid for each in relay.gate.admitted] == ["u"]
        container = await relay.create(pod)
        assert relay.runtime.containers[container].resources.cpuset_cpus == "3"
        assert relay.gate.made == [("u", "main", container)]
        relay.gate.rejects = AdmissionRejected("plugin_refused", "9 CPUs are wanted — none is free")
        with pytest.raises(grpc.aio.AioRpcError, match="9 CPUs are wanted — none") as caught:
            await relay.run()
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_all_else_passes_while_the_agent_is_away() -> None:
    async with relayed() as relay:
        await relay.agent()
        pod = await relay.run()
        await relay.without_agent()
        listed = decode(cri.ListPodSandboxResponse, await relay.call("ListPodSandbox"))
        assert [each.id for each in listed.items] == [pod]
        removal = encode(cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
        await relay.call("RemovePodSandbox", removal)
        assert relay.gate.left == [], "it finds out when it is back"


async def test_a_call_waits_for_the_agent() -> None:
    async with relayed() as relay:
        starting = asyncio.create_task(relay.run())
        listed = decode(cri.ListPodSandboxResponse, await relay.call("ListPodSandbox"))
        assert not listed.items
        await relay.agent()
        assert await starting
        assert len(relay.gate.admitted) == 1


async def test_a_call_that_waited_too_long_is_refused_with_the_reason() -> None:
    async with relayed(wait=0.2) as relay:
        with pytest.raises(grpc.aio.AioRpcError, match="agent_away: no node agent") as caught:
            await relay.run()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not decode(cri.ListPodSandboxResponse, await relay.call("ListPodSandbox")).items
        await relay.agent()
        await relay.run()


async def test_an_agent_that_dies_while_it_decides_is_asked_again() -> None:
    async with relayed() as relay:
        asked, never = asyncio.Event(), asyncio.Event()
        admit = relay.gate.admit_pod

        async def hang(_: Any) -> None:
            asked.set()
            await never.wait()

        relay.gate.admit_pod = hang  # type: ignore[method-assign, assignment]
        await relay.agent()
        starting = asyncio.create_task(relay.run())
        await asked.wait()
        await relay.without_agent()
        relay.gate.admit_pod = admit  # type: ignore[method-assign]
        await relay.agent()
        assert await starting


async def test_a_later_refusal_is_a_refusal_and_not_an_outage() -> None:
    async with relayed() as relay:
        await relay.agent()
        relay.gate.rejects = AdmissionRejected("plugin_timeout", "no answer", later=True)
        with pytest.raises(grpc.aio.AioRpcError, match="plugin_timeout") as caught:
            await relay.run()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_agent_hears_that_the_runtime_failed() -> None:
    async with relayed() as relay:
        await relay.agent()
        pod = await relay.run()
        container = await relay.create(pod)
        resources = cri.LinuxContainerResources(cpu_shares=7)
        update = cri.UpdateContainerResourcesRequest(container_id=container, linux=resources)
        await relay.call("UpdateContainerResources", encode(update))
        assert relay.gate.resized == [("u", "main", container)]
        resize = relay.gate.resize_container

        async def too_late(*asked: Any) -> ContainerSettings:
            del relay.runtime.containers[container]
            return await resize(*asked)

        relay.gate.resize_container = too_late  # type: ignore[method-assign, assignment]
        with pytest.raises(grpc.aio.AioRpcError, match="no container"):
            await relay.call("UpdateContainerResources", encode(update))
        await eventually(lambda: relay.gate.not_resized == [("u", "main")])


async def test_a_call_that_the_client_gives_up_is_cancelled_at_the_agent() -> None:
    async with relayed() as relay:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def hang(_: Any) -> None:
            asked.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        relay.gate.admit_pod = hang  # type: ignore[method-assign, assignment]
        await relay.agent()
        asking: Any = relay.channel.unary_unary(f"/{cri.SERVICE}/RunPodSandbox")
        call = asking(RUN)
        await asked.wait()
        call.cancel()
        await eventually(cancelled.is_set)
