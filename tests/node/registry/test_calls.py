"""Calls of plugins: within a deadline there is an answer, or a failure of a known kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import monotonic

import grpc
import msgspec
import pytest

from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.sdk.plugin import allocation_for
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    ALLOCATE_FOR_POD,
    GET_TOPOLOGY_HINTS,
    PRE_START_CONTAINER,
    PodResourceRequest,
    PreStartContainerRequest,
    PreStartContainerResponse,
    ResourceAllocationInfo,
    ResourcePluginOptions,
    ResourceRequest,
)
from dovetail.wire import rpc
from dovetail.wire.codec import encode
from tests.node.registry.rig import HASTY, REQUEST, Pinner, is_up, plugin_at, registry_of
from tests.support.loops import eventually

PATIENT = Deadlines(call=60)
"""For calls that end when the test wants them to."""


@asynccontextmanager
async def endpoint(
    directory: Path, plugin: Pinner, *, grace: float = 0, deadlines: Deadlines | None = None
) -> AsyncIterator[PluginEndpoint]:
    async with (
        plugin_at(directory / "cpu.sock", plugin, grace),
        registry_of(directory, deadlines=deadlines) as registry,
    ):
        await eventually(lambda: is_up(registry))
        found = registry.of("cpu")
        assert found
        yield found


def from_pod(name: str) -> ResourceRequest:
    return msgspec.structs.replace(REQUEST, pod_name=name)


@pytest.mark.parametrize(
    ("pod", "failure", "words"),
    [
        ("hang", PluginFailure.TIMEOUT, "Allocate of the plugin for cpu: Deadline Exceeded"),
        ("refuse", PluginFailure.REFUSED, "Allocate of the plugin for cpu: all CPUs are taken"),
        ("huge", PluginFailure.GARBAGE, "larger than max"),
        (
            "other",
            PluginFailure.GARBAGE,
            "it answered for pod_uid 'uid-2', and was asked for 'uid-1'",
        ),
    ],
)
async def test_each_failure_has_its_kind_and_words(
    directory: Path, pod: str, failure: PluginFailure, words: str
) -> None:
    async with endpoint(directory, Pinner()) as plugin:
        plugin.deadlines = HASTY if pod == "hang" else PATIENT
        with pytest.raises(PluginError, match=words) as failed:
            await plugin.call(ALLOCATE, from_pod(pod))
        assert (failed.value.resource, failed.value.failure) == ("cpu", failure)
        # The plugin is as good as before.
        plugin.deadlines = PATIENT
        await plugin.call(ALLOCATE, REQUEST)


@asynccontextmanager
async def answering(directory: Path, answer: Callable[[], bytes]) -> AsyncIterator[PluginEndpoint]:
    """A plugin that answers Allocate with any bytes, as many as it likes."""

    async def answered(_: bytes, __: object) -> bytes:
        return answer()

    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answered)
    named = {ALLOCATE.name: handler}
    service = grpc.method_handlers_generic_handler(ALLOCATE.service, named)
    server.add_generic_rpc_handlers([service])
    server.add_insecure_port(f"unix:{directory}/p.sock")
    await server.start()
    endpoint = PluginEndpoint("cpu", ResourcePluginOptions(), Deadlines(), monotonic)
    endpoint.channel = rpc.connect(f"{directory}/p.sock")
    try:
        yield endpoint
    finally:
        await endpoint.channel.close()
        await server.stop(None)


async def test_an_answer_too_large_to_receive_is_garbage(directory: Path) -> None:
    async with answering(directory, lambda: bytes(2**22 + 1)) as plugin:
        with pytest.raises(PluginError, match="larger than max") as failed:
            await plugin.call(ALLOCATE, REQUEST)
        assert failed.value.failure is PluginFailure.GARBAGE


async def test_any_bytes_are_an_answer_or_garbage(directory: Path) -> None:
    drawn = Random(4)
    good = encode(allocation_for(REQUEST, {"cpu": ResourceAllocationInfo(allocated_quantity=2.5)}))

    def spoilt() -> bytes:
        data = bytearray(good)
        for _ in range(drawn.randint(1, 3)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        return bytes(data[: drawn.randint(0, len(data))])

    results = set()
    async with answering(directory, spoilt) as plugin:
        for _ in range(500):
            try:
                await plugin.call(ALLOCATE, REQUEST)
                results.add("ok")
            except PluginError as error:
                results.add(error.failure.value)
    assert results == {"ok", "garbage"}


async def test_a_call_that_the_plugin_does_not_offer_is_told_from_a_refusal(
    directory: Path,
) -> None:
    async with endpoint(directory, Pinner()) as plugin:
        with pytest.raises(
            PluginError, match=r"does not offer AllocateForPod .UNIMPLEMENTED"
        ) as no:
            await plugin.call(ALLOCATE_FOR_POD, PodResourceRequest(pod_uid="uid-1"))
        assert no.value.failure is PluginFailure.UNIMPLEMENTED


async def test_a_plugin_that_is_down_fails_at_once(directory: Path) -> None:
    async with registry_of(directory) as registry:
        plugin = registry.remember("cpu", ResourcePluginOptions())
        with pytest.raises(PluginError, match="the plugin for cpu is not there") as failed:
            await plugin.call(ALLOCATE, REQUEST)
        assert failed.value.failure is PluginFailure.DOWN


async def test_a_plugin_that_dies_meanwhile_is_down(directory: Path) -> None:
    async with (
        registry_of(directory) as registry,
        plugin_at(directory / "cpu.sock", Pinner()) as server,
    ):
        await eventually(lambda: is_up(registry))
        plugin = registry.of("cpu")
        assert plugin
        asking = asyncio.create_task(plugin.call(ALLOCATE, from_pod("hang")))
        await asyncio.sleep(0.1)
        assert server.server
        await server.server.stop(None)
        with pytest.raises(PluginError) as failed:
            await asking
        assert failed.value.failure is PluginFailure.DOWN


async def test_a_registry_that_stops_fails_calls_instead_of_cancelling_the_caller(
    directory: Path,
) -> None:
    async with plugin_at(directory / "cpu.sock", Pinner()):
        async with registry_of(directory) as registry:
            await eventually(lambda: is_up(registry))
            plugin = registry.of("cpu")
            assert plugin
            asking = asyncio.create_task(plugin.call(ALLOCATE, from_pod("hang")))
            await asyncio.sleep(0.1)
        with pytest.raises(PluginError) as failed:
            await asking
        assert failed.value.failure is PluginFailure.DOWN


async def test_a_caller_that_gives_up_is_cancelled(directory: Path) -> None:
    async with endpoint(directory, Pinner()) as plugin:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await plugin.call(ALLOCATE, from_pod("hang"))


async def test_a_call_under_way_may_end_after_the_socket_was_removed(directory: Path) -> None:
    """A plugin that stops in good order answers what it was asked."""
    pinner = Pinner()
    async with endpoint(directory, pinner, grace=60, deadlines=PATIENT) as plugin:
        asking = asyncio.create_task(plugin.call(ALLOCATE, from_pod("slow")))
        await eventually(lambda: pinner.asked, 60)
        before = plugin.holder
        (directory / "cpu.sock").unlink()
        # It is down for a moment only: the plugin makes its socket anew.
        await eventually(lambda: plugin.holder is not before, 60)
        pinner.go_on.set()
        answer = await asking
        assert answer.pod_uid == "uid-1"


async def test_calls_do_not_wait_for_each_other(directory: Path) -> None:
    pinner = Pinner()
    async with endpoint(directory, pinner, deadlines=PATIENT) as plugin:
        slow = [asyncio.create_task(plugin.call(ALLOCATE, from_pod("slow"))) for _ in range(50)]
        await eventually(lambda: len(pinner.asked) == 50, 60)
        await plugin.call(ALLOCATE, REQUEST)
        assert not any(each.done() for each in slow)
        pinner.go_on.set()
        assert {each.pod_uid for each in await asyncio.gather(*slow)} == {"uid-1"}


async def test_before_a_container_starts_a_plugin_may_take_longer(directory: Path) -> None:
    class Cleaner(Pinner):
        async def pre_start_container(
            self, request: PreStartContainerRequest
        ) -> PreStartContainerResponse:
            await asyncio.sleep(0.2)
            return PreStartContainerResponse()

    async with endpoint(directory, Cleaner()) as plugin:
        plugin.deadlines = Deadlines(call=0.1, pre_start=60)
        question = PreStartContainerRequest(pod_uid="uid-1")
        assert await plugin.call(PRE_START_CONTAINER, question) == PreStartContainerResponse()


async def test_calls_are_measured_by_result(directory: Path) -> None:
    def counted(result: str) -> float:
        labels = {"resource": "cpu", "method": "Allocate", "result": result}
        name = "dovetail_agent_plugin_call_seconds_count"
        return AGENT_METRICS.registry.get_sample_value(name, labels) or 0.0

    before = {each: counted(each) for each in ("ok", "refused")}
    async with endpoint(directory, Pinner()) as plugin:
        await plugin.call(ALLOCATE, REQUEST)
        with pytest.raises(PluginError):
            await plugin.call(ALLOCATE, from_pod("refuse"))
        assert (
            AGENT_METRICS.registry.get_sample_value("dovetail_agent_plugin_up", {"resource": "cpu"})
            == 1
        )
    assert {each: counted(each) - before[each] for each in before} == {"ok": 1, "refused": 1}
    assert (
        AGENT_METRICS.registry.get_sample_value("dovetail_agent_plugin_up", {"resource": "cpu"})
        == 0
    )


async def test_an_answer_without_a_pod_is_an_answer(directory: Path) -> None:
    """Some plugins answer for containers that do not concern them with nothing at all."""
    async with endpoint(directory, Pinner()) as plugin:
        answer = await plugin.call(GET_TOPOLOGY_HINTS, REQUEST)
        assert answer.resource_hints == {}
