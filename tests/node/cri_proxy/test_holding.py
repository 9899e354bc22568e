"""Calls that the proxy looks at, between a real client and a runtime of the tests' own."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.cri.client import LARGEST_MESSAGE_BYTES
from dovetail.node.cri_proxy.frames import (
    PREFACE,
    ErrorCode,
    FrameSplitter,
    FrameType,
    frame_bytes,
    goaway,
)
from dovetail.node.wire import cri
from dovetail.wire.codec import decode, encode
from tests.node.cri_proxy.backend import VERSION, between
from tests.support.loops import eventually
from tests.support.node import raw_calls
from tests.support.node.gates import Scripted

RUN = f"/{cri.SERVICE}/RunPodSandbox"
CREATE = f"/{cri.SERVICE}/CreateContainer"
SECONDS = 20
PATHS = [
    f"/{cri.SERVICE}/{method}"
    for method in (
        "RunPodSandbox",
        "CreateContainer",
        "UpdateContainerResources",
        "RemovePodSandbox",
    )
]


class Slow(Scripted):
    """Decides when it is told to."""

    def __init__(self, **given: ContainerSettings) -> None:
        super().__init__(**given)
        self.asked_now, self.decide = asyncio.Event(), asyncio.Event()
        self.cancelled = False

    async def admit_pod(self, sandbox: Sandbox) -> None:
        self.asked_now.set()
        try:
            await self.decide.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        await super().admit_pod(sandbox)


def pod(padding: int = 0) -> bytes:
    config = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(uid="u", name="p", namespace="n"),
        annotations={"padding": "x" * padding},
    )
    return encode(cri.RunPodSandboxRequest(config=config))


def container(padding: int = 0) -> bytes:
    return encode(
        cri.CreateContainerRequest(
            config=cri.ContainerConfig(metadata=cri.ContainerMetadata(name="c")),
            sandbox_config=decode(cri.RunPodSandboxRequest, pod(padding)).config,
        )
    )


def call(channel: grpc.aio.Channel, path: str, body: bytes, **more: Any) -> Any:
    asking: Any = channel.unary_unary(path)
    return asking(body, timeout=SECONDS, **more)


async def failure(calling: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return caught.value


@pytest.mark.parametrize("path", PATHS)
async def test_garbage_is_refused_and_does_not_reach_the_runtime(path: str) -> None:
    async with between() as here:
        backend, channel = here.backend, here.channel
        error = await failure(call(channel, path, b"\xff\xff\xff"))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await call(channel, VERSION, b"next") == b"next"
        assert backend.bodies == [b"next"]


async def test_compressed_question_is_refused() -> None:
    async with between() as here:
        backend, channel, gzip = here.backend, here.channel, grpc.Compression.Gzip
        error = await failure(call(channel, RUN, pod(1000), compression=gzip))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert await call(channel, VERSION, b"x" * 1000, compression=gzip) == b"x" * 1000
        assert backend.bodies == [b"x" * 1000]


@pytest.mark.parametrize("path", [RUN, CREATE])
async def test_large_question_is_held_and_sent(path: str) -> None:
    gate = Scripted(c=ContainerSettings(annotations={"given": "y" * 70_000}))
    body = (pod if path == RUN else container)(10 << 20)
    async with between(gate) as here:
        # The answer is what the runtime got.
        answer = await call(here.channel, path, body)
        assert here.backend.bodies == [answer]
        if path == RUN:
            assert answer == body
        else:
            got = decode(cri.CreateContainerRequest, answer)
            assert got.config.annotations == gate.given["c"].annotations
            assert len(got.sandbox_config.annotations["padding"]) == 10 << 20


async def test_question_beyond_what_is_allowed_is_refused() -> None:
    async with between() as here:
        unbounded = [("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(f"unix:{here.listen}", unbounded) as channel:
            error = await failure(call(channel, RUN, pod(LARGEST_MESSAGE_BYTES + 1)))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await call(channel, VERSION, b"next") == b"next"
        assert here.backend.bodies == [b"next"]


async def test_long_words_of_a_refusal_arrive() -> None:
    gate, words = Scripted(), "ü% " * 1500
    gate.rejects = AdmissionRejected("topology_affinity", words)
    async with between(gate) as here:
        wide = [("grpc.max_metadata_size", 1 << 20)]
        async with grpc.aio.insecure_channel(f"unix:{here.listen}", wide) as channel:
            error = await failure(call(channel, RUN, pod()))
            assert error.details() == f"dovetail: topology_affinity: {words}"


async def test_other_calls_go_on_while_the_gate_decides() -> None:
    gate = Slow()
    async with between(gate) as here:
        held = [call(here.channel, RUN, pod()) for _ in range(20)]
        await gate.asked_now.wait()
        assert await call(here.channel, VERSION, b"meanwhile") == b"meanwhile"
        assert here.backend.bodies == [b"meanwhile"]
        gate.decide.set()
        assert [await each for each in held] == [pod()] * 20


async def test_client_that_gives_up_while_the_gate_decides_cancels_it() -> None:
    gate = Slow()
    async with between(gate) as here:
        held = call(here.channel, RUN, pod())
        await gate.asked_now.wait()
        held.cancel()
        await eventually(lambda: gate.cancelled)
        gate.decide.set()
        assert await call(here.channel, VERSION, b"next") == b"next"
        assert (here.backend.bodies, gate.admitted, gate.left) == ([b"next"], [], [])


async def test_deadline_holds_while_the_gate_decides() -> None:
    gate = Slow()
    async with between(gate) as here:
        asking: Any = here.channel.unary_unary(RUN)
        error = await failure(asking(pod(), timeout=0.5))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await eventually(lambda: gate.cancelled)
        assert await call(here.channel, VERSION, b"next") == b"next"


async def test_gate_hears_of_a_pod_whose_client_gave_up_at_the_runtime() -> None:
    gate = Scripted()
    async with between(gate) as here:
        here.backend.hangs_always = True
        held = call(here.channel, RUN, pod())
        await here.backend.hanging.wait()
        held.cancel()
        await eventually(lambda: gate.left == ["u"])
        await here.backend.cancelled.wait()


async def test_end_of_the_runtime_ends_connections_and_what_waits_on_them() -> None:
    gate = Slow()
    async with between(gate) as here:
        held = call(here.channel, RUN, pod())
        await gate.asked_now.wait()
        await here.server.stop(0)
        # What it says last, or that it is not there.
        code = (await failure(held)).code()
        assert code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        await eventually(lambda: gate.cancelled)
        error = await failure(call(here.channel, VERSION, b"x"))
        assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_answer_comes_after_the_gate_knows_what_was_created() -> None:
    class Noting(Scripted):
        async def container_created(self, *args: Any) -> None:
            await asyncio.sleep(0.2)
            await super().container_created(*args)

    gate = Noting()
    async with between(gate) as here:
        await call(here.channel, CREATE, container())
        assert len(gate.made) == 1


async def test_calls_under_way_end_before_the_proxy_does_and_no_others_begin() -> None:
    gate = Slow()
    async with between(gate) as here:
        held = call(here.channel, RUN, pod())
        events: Any = raw_calls.stream(here.channel, f"/{cri.SERVICE}/GetContainerEvents")(b"hang")
        await gate.asked_now.wait()
        await here.backend.hanging.wait()
        stopping = asyncio.create_task(here.proxy.stop(SECONDS))
        await eventually(lambda: not here.listen.exists())
        gate.decide.set()
        assert await held == pod()
        # The stream that goes on for ever is not waited for.
        await stopping
        with pytest.raises(grpc.aio.AioRpcError):
            await events.read()


async def test_calls_that_do_not_end_are_ended_with_the_proxy() -> None:
    gate = Slow()
    async with between(gate) as here:
        held = call(here.channel, RUN, pod())
        await gate.asked_now.wait()
        await here.proxy.stop(0.1)
        assert (await failure(held)).code() is grpc.StatusCode.UNAVAILABLE
        assert gate.cancelled


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        PREFACE + frame_bytes(FrameType.HEADERS, 4, 1, b"\xff\xff\xff\xff"),
        PREFACE + frame_bytes(FrameType.CONTINUATION, 4, 1, b""),
    ],
    ids=["another protocol", "headers", "frames"],
)
async def test_client_that_speaks_something_else_is_told_and_left(said: bytes) -> None:
    async with between() as here:
        reader, writer = await asyncio.open_unix_connection(str(here.listen))
        writer.write(said)
        heard = await reader.read()
        writer.close()
        (*_, last) = FrameSplitter().feed(heard)
        assert last.raw == goaway(0, ErrorCode.PROTOCOL_ERROR)
        assert await call(here.channel, VERSION, b"x") == b"x", "others do not notice"


async def test_calls_are_timed_by_kind() -> None:
    def counted() -> list[float]:
        name = "dovetail_agent_proxied_call_seconds_count"
        kinds = ("passed", "injected", "refused")
        return [
            AGENT_METRICS.registry.get_sample_value(name, {"kind": kind}) or 0 for kind in kinds
        ]

    gate = Scripted()
    async with between(gate) as here:
        before = counted()
        await call(here.channel, VERSION, b"x")
        await call(here.channel, RUN, pod())
        gate.rejects = AdmissionRejected("plugin_refused", "no")
        await failure(call(here.channel, RUN, pod()))
        await failure(call(here.channel, VERSION, b"fail"))
        after = counted()
        assert [new - old for new, old in zip(after, before, strict=True)] == [2, 1, 1]
