"""Why pods may not start, from what the registry says of a real plugin."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from dovetail.node.manager.reasons import OF_FAILURES, rejection, unimplemented
from dovetail.node.ports import Failure, PluginError
from dovetail.node.registry.endpoint import ask
from dovetail.node.wire import rpc
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    ALLOCATE_FOR_POD,
    PodResourceRequest,
    ResourceAllocationResponse,
    ResourceRequest,
)


@pytest.fixture
def socket() -> Iterator[str]:
    """Short: the kernel takes no long ones."""
    folder = tempfile.mkdtemp(prefix="dt", dir="/tmp")
    yield str(Path(folder) / "p.sock")
    shutil.rmtree(folder)


def test_a_method_that_a_plugin_lacks_is_told_from_a_refusal(socket: str) -> None:
    async def refuse(question: ResourceRequest) -> ResourceAllocationResponse:
        raise rpc.Refused(grpc.StatusCode.FAILED_PRECONDITION, "too little is free")

    async def story() -> list[PluginError]:
        server = grpc.aio.server()
        rpc.offer(server, [rpc.Served(ALLOCATE, refuse)])
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        channel = rpc.connect(socket)
        found = []
        for asking in (
            ask(channel, ALLOCATE, ResourceRequest(), 5, "cpu"),
            ask(channel, ALLOCATE_FOR_POD, PodResourceRequest(), 5, "cpu"),
        ):
            with pytest.raises(PluginError) as caught:
                await asking
            found.append(caught.value)
        await channel.close()
        await server.stop(None)
        return found

    refused, lacking = asyncio.run(story())
    assert not unimplemented(refused)
    assert unimplemented(lacking)


def test_every_failure_has_a_reason() -> None:
    assert set(OF_FAILURES) == set(Failure)
    error = rejection(PluginError("cpu", Failure.DOWN, "words"), later=True)
    assert (error.reason, str(error), error.later) == ("plugin_down", "words", True)
