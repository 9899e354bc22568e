"""What passes the proxy unseen: any method of any service, with all that belongs to a call."""

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

from dovetail.node.cri_proxy.proxy import Proxy
from tests.node.cri_proxy.backend import UNKNOWN, VERSION, Backend, between
from tests.support.node import raw_calls
from tests.support.node.gates import Scripted


@asynccontextmanager
async def passing() -> AsyncIterator[tuple[Backend, grpc.aio.Channel]]:
    async with between() as here:
        yield here.backend, here.channel


@pytest.mark.parametrize("path", [VERSION, UNKNOWN], ids=["known", "unknown"])
async def test_metadata_and_deadline_pass(path: str) -> None:
    async with passing() as (backend, channel):
        sent = (("trace", "1"), ("blob-bin", b"\x00\xfe"))
        call: Any = raw_calls.unary(channel, path)(b"hello", metadata=sent, timeout=9)
        assert await call == b"hello"
        assert backend.paths == [path]
        assert backend.metadata.items() >= dict(sent).items()
        assert backend.remaining[0] is not None
        assert 5 < backend.remaining[0] < 10, "gRPC rounds, so not exactly 9"
        assert dict(await call.initial_metadata())["before"] == "i"
        last = dict(await call.trailing_metadata())
        assert (last["after"], last["after-bin"]) == ("t", b"\xff")


@pytest.mark.parametrize("path", [VERSION, UNKNOWN], ids=["known", "unknown"])
async def test_call_without_deadline_has_none(path: str) -> None:
    async with passing() as (backend, channel):
        asking: Any = channel.unary_unary(path)
        assert await asking(b"x") == b"x"
        (remaining,) = backend.remaining
        assert remaining is None or remaining > 10**6


@pytest.mark.parametrize("path", [VERSION, UNKNOWN], ids=["known", "unknown"])
async def test_errors_pass_with_code_words_and_details(path: str) -> None:
    async with passing() as (_backend, channel):
        asking: Any = channel.unary_unary(path)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asking(b"fail")
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert caught.value.details() == "no more"
        details = dict(caught.value.trailing_metadata() or ())
        assert details["grpc-status-details-bin"] == b"\x08\x05"
        assert details["why"] == "so"


@pytest.mark.parametrize("path", [VERSION, UNKNOWN], ids=["known", "unknown"])
async def test_cancellation_passes(path: str) -> None:
    async with passing() as (backend, channel):
        call: Any = raw_calls.unary(channel, path)(b"hang")
        await asyncio.wait_for(backend.hanging.wait(), 10)
        call.cancel()
        async with asyncio.timeout(10):
            await backend.cancelled.wait()


async def test_answers_of_a_stream_pass_one_by_one() -> None:
    async with passing() as (backend, channel):
        call: Any = raw_calls.stream(channel, UNKNOWN)(b"echo")
        assert await call.read() == b"echo"
        for body in (b"one", b"", b"three"):
            backend.saying.put_nowait(body)
            assert await call.read() == body
        backend.saying.put_nowait(None)
        assert await call.read() == grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK


async def test_stream_that_nobody_reads_any_longer_ends_at_the_runtime() -> None:
    async with passing() as (backend, channel):
        call: Any = raw_calls.stream(channel, UNKNOWN)(b"flood")
        for _ in range(3):
            await call.read()
        call.cancel()
        async with asyncio.timeout(10):
            await backend.cancelled.wait()


async def test_stream_that_fails_in_the_middle_gives_what_came_before() -> None:
    async with passing() as (backend, channel):
        path = "/runtime.v1.RuntimeService/GetContainerEvents"
        call: Any = raw_calls.stream(channel, path)(b"echo")
        assert await call.read() == b"echo"
        backend.saying.put_nowait(b"fail")
        with pytest.raises(grpc.aio.AioRpcError, match="no more"):
            await call.read()


@pytest.mark.parametrize("path", [VERSION, UNKNOWN], ids=["known", "unknown"])
async def test_large_messages_pass(path: str) -> None:
    async with passing() as (_backend, channel):
        body = b"x" * ((16 << 20) - 16)
        asking: Any = channel.unary_unary(path)
        assert await asking(body) == body


async def test_runtime_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    proxy = Proxy(directory / "p.sock", directory / "none.sock", Scripted())
    await proxy.start()
    async with grpc.aio.insecure_channel(f"unix:{directory}/p.sock") as channel:
        asking: Any = channel.unary_unary(VERSION)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asking(b"", timeout=10)
    await proxy.stop(0)
    shutil.rmtree(directory)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
