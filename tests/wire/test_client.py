"""gRPC clients: where they go, what they take, and how a failure is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import grpc
import grpc.aio
import pytest

from dovetail.core.errors import Malformed
from dovetail.wire.client import CallFailure, EndpointError, GrpcEndpoint, ask, connected
from dovetail.wire.codec import Message
from dovetail.wire.rpc import LARGEST_MESSAGE_BYTES, Method


class Text(Message):
    text: Annotated[str, 1] = ""


SAY = Method("test.Echo", "Say", Text, Text)


@asynccontextmanager
async def served(
    answer: Any, compression: grpc.Compression | None = None
) -> AsyncIterator[GrpcEndpoint]:
    server = grpc.aio.server(
        compression=compression, options=[("grpc.max_send_message_length", -1)]
    )
    handler: Any = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(SAY.service, {SAY.name: handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield GrpcEndpoint(host="127.0.0.1", port=port)
    finally:
        await server.stop(None)


async def said(endpoint: GrpcEndpoint, seconds: float = 30.0) -> str:
    async with connected(endpoint) as channel:
        return (await ask(channel, SAY, Text("hello"), seconds)).text


def text(length: int) -> bytes:
    """A message with one field of that many bytes."""
    size, data = length, b"\x0a"
    while size > 0x7F:
        data += bytes([size & 0x7F | 0x80])
        size >>= 7
    return data + bytes([size]) + b"x" * length


@pytest.mark.parametrize(
    ("host", "target"),
    [
        ("127.0.0.1", "ipv4:127.0.0.1:7"),
        ("::1", "ipv6:[::1]:7"),
        ("[fe80::1]", "ipv6:[fe80::1]:7"),
        ("region.example.com", "dns:///region.example.com:7"),
        ("a-b", "dns:///a-b:7"),
    ],
)
def test_a_host_is_a_name_or_an_address(host: str, target: str) -> None:
    assert GrpcEndpoint(host=host, port=7).target == target


@pytest.mark.parametrize(
    "host",
    [
        "",
        "unix:/x",
        "unix:x",
        "dns://8.8.8.8/x",
        "ipv4:1.2.3.4",
        "a/b",
        "a b",
        "-a",
        "a_b",
        "x" * 64,
    ],
)
def test_and_nothing_else(host: str) -> None:
    with pytest.raises(Malformed, match="is no name or address of a host"):
        _ = GrpcEndpoint(host=host, port=7).target


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_nor_any_port(port: int) -> None:
    with pytest.raises(Malformed, match="is no port"):
        _ = GrpcEndpoint(host="a", port=port).target


async def test_an_answer() -> None:
    async def answer(data: bytes, _: object) -> bytes:
        return data

    async with served(answer) as endpoint:
        assert await said(endpoint) == "hello"


async def test_an_answer_has_a_largest_size() -> None:
    async def answer(_: bytes, __: object) -> bytes:
        return text(LARGEST_MESSAGE_BYTES)

    async with served(answer) as endpoint:
        with pytest.raises(EndpointError, match="larger than max") as failed:
            await said(endpoint)
    assert failed.value.failure is CallFailure.FAILED


async def test_nor_is_it_large_once_it_is_unpacked() -> None:
    async def answer(_: bytes, __: object) -> bytes:
        return text(4 * LARGEST_MESSAGE_BYTES)

    async with served(answer, grpc.Compression.Gzip) as endpoint:
        with pytest.raises(EndpointError):
            await said(endpoint)


async def test_words_of_a_failure_are_one_short_line() -> None:
    async def answer(_: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no\nsuch " + "x" * 5000)
        return b""

    async with served(answer) as endpoint:
        with pytest.raises(EndpointError) as failed:
            await said(endpoint)
    words = str(failed.value)
    assert words.startswith("Say: INVALID_ARGUMENT: no such xxx")
    assert len(words) < 600


async def test_no_answer_in_time() -> None:
    async def answer(_: bytes, __: object) -> bytes:
        await asyncio.sleep(60)
        return b""

    async with served(answer) as endpoint:
        with pytest.raises(EndpointError, match=r"Say: no answer within 0.2 s") as failed:
            await said(endpoint, 0.2)
    assert failed.value.failure is CallFailure.TIMED_OUT
