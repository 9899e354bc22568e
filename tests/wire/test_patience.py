"""A channel whose server was away is waited for, if whoever calls has patience."""

from __future__ import annotations

import tempfile
from pathlib import Path

import grpc
import grpc.aio
import pytest

from dovetail.node.wire import cri
from dovetail.wire.rpc import Served, call, connect, offer

QUESTION = cri.ListContainersRequest()


async def test_a_server_that_just_came_back_is_asked() -> None:
    """gRPC tries again after a second; until then it fails calls without trying."""

    async def listed(_: object) -> cri.ListContainersResponse:
        return cri.ListContainersResponse()

    with tempfile.TemporaryDirectory() as directory:
        socket = Path(directory) / "s"
        channel = connect(str(socket))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, cri.LIST_CONTAINERS, QUESTION, 60)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        server = grpc.aio.server()
        offer(server, [Served(cri.LIST_CONTAINERS, listed)])
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            answer = await call(channel, cri.LIST_CONTAINERS, QUESTION, 60, patient=True)
            assert answer == cri.ListContainersResponse()
        finally:
            await channel.close()
            await server.stop(None)
