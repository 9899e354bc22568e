"""Calls passed on as bytes: whatever the method, nothing of it is looked at.

Metadata, deadline and cancellation go one way; messages, metadata, status code, its words and
details go the other. Methods known to have one question and one answer take the short way. All
others are passed as one question with any number of answers: CRI has no other kinds. Questions in
a stream would not do for both. gRPC writes them one by one, and if the runtime refuses a call while
one is being written, its status gets lost and the call fails with an internal error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from dovetail.node import metrics

Context = grpc.aio.ServicerContext[bytes, bytes]

NOT_PASSED = (":", "grpc-", "user-agent", "te", "content-type")
"""Metadata that each connection has of its own."""


class Forward:
    """Passes calls on to a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._unary: dict[str, Any] = {}

    async def unary(self, path: str, body: bytes, context: Context) -> bytes:
        """Ask, and prepare metadata of the answer; raises AioRpcError as the other side did."""
        asking = self._unary.get(path)
        if asking is None:
            asking = self._unary[path] = self._channel.unary_unary(path)
        call = asking(body, metadata=_passed(context), timeout=context.time_remaining())
        answer: bytes = await call
        await _answer_metadata(call, context)
        return answer

    def unary_handler(self, path: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        observe = metrics.PROXIED.labels("passed").time

        async def handle(body: bytes, context: Context) -> bytes:
            with observe():
                try:
                    return await self.unary(path, body, context)
                except grpc.aio.AioRpcError as error:
                    await fail(context, error)

        return grpc.unary_unary_rpc_method_handler(handle)

    def stream_handler(self, path: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        calling: Any = self._channel.unary_stream(path)

        async def handle(body: bytes, context: Context) -> AsyncIterator[bytes]:
            call: Any = calling(body, metadata=_passed(context), timeout=context.time_remaining())
            try:
                await context.send_initial_metadata(await call.initial_metadata())
                async for answer in call:
                    yield answer
                context.set_trailing_metadata(await call.trailing_metadata())
            except grpc.aio.AioRpcError as error:
                await fail(context, error)
            finally:
                call.cancel()

        return grpc.unary_stream_rpc_method_handler(handle)


async def fail(context: Context, error: grpc.aio.AioRpcError) -> NoReturn:
    """Answer with the error that the other side gave."""
    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata() or ()))


def _passed(context: Context) -> Sequence[tuple[str, str | bytes]]:
    return [
        (key, value)
        for key, value in context.invocation_metadata() or ()
        if not key.startswith(NOT_PASSED)
    ]


async def _answer_metadata(call: Any, context: Context) -> None:
    """Most answers have none, and then nothing is to be done."""
    if first := await call.initial_metadata():
        await context.send_initial_metadata(first)
    if last := await call.trailing_metadata():
        context.set_trailing_metadata(last)
