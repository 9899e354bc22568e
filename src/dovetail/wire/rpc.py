"""gRPC calls: the methods there are, how to call one, how to serve some; of agent and server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import grpc
import grpc.aio
import structlog

from dovetail.wire.codec import BadMessage, Message, decode, encode

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)

LARGEST_MESSAGE_BYTES = 4 * 2**20
"""Bytes of a message, which is what gRPC allows by default."""

OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
    # Not to share a connection that another channel to the same socket has, or had.
    ("grpc.use_local_subchannel_pool", 1),
)

LOG = structlog.get_logger("dovetail.wire.rpc")


class Method(NamedTuple, Generic[Q, A]):
    service: str
    name: str
    question: type[Q]
    answer: type[A]

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


class Refused(Exception):
    """Raised by a handler: the caller gets the code and the words."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


def connect(socket: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix:{socket}", OPTIONS)


async def call(
    channel: grpc.aio.Channel,
    method: Method[Q, A],
    question: Q,
    deadline: float,
    *,
    patient: bool = False,
) -> A:
    """The answer; grpc.aio.AioRpcError or BadMessage if there is none. `deadline` in seconds.

    `patient`: a channel whose server is away, or just came back, is waited for until then.
    """
    asking: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method.path)
    data = await asking(encode(question), timeout=deadline, wait_for_ready=patient or None)
    return decode(method.answer, data)


Handler = Callable[[Any], Awaitable[Message]]


class Served(NamedTuple):
    method: Method[Any, Any]
    handler: Handler
    """Takes the question, returns the answer; raises Refused."""


def offer(server: grpc.aio.Server, served: Iterable[Served]) -> None:
    """Let the server answer these methods."""
    services: dict[str, dict[str, grpc.RpcMethodHandler[bytes, bytes]]] = {}
    for method, handler in served:
        services.setdefault(method.service, {})[method.name] = grpc.unary_unary_rpc_method_handler(
            _answering(method, handler)
        )
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(name, each) for name, each in services.items()]
    )


def _answering(method: Method[Q, A], handler: Callable[[Q], Awaitable[A]]) -> Any:
    async def answer(data: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        try:
            return encode(await handler(decode(method.question, data)))
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Refused as error:
            await context.abort(error.code, error.words)
        except Exception as error:
            LOG.exception("failed", method=method.path)
            await context.abort(grpc.StatusCode.INTERNAL, f"{method.name} failed: {error!r}")

    return answer


class Streamed(NamedTuple):
    """A method that answers a question with many messages."""

    method: Method[Any, Any]
    handler: Callable[[Any], AsyncIterator[Message]]
    """Takes the question, yields answers until it returns or the caller goes."""


def streaming(streamed: Iterable[Streamed]) -> Sequence[grpc.GenericRpcHandler]:
    """For a server that answers these methods beside others of the same services."""
    return [
        grpc.method_handlers_generic_handler(
            each.method.service,
            {each.method.name: grpc.unary_stream_rpc_method_handler(_answering_by_stream(each))},
        )
        for each in streamed
    ]


def _answering_by_stream(streamed: Streamed) -> Any:
    async def answer(
        data: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        try:
            async for each in streamed.handler(decode(streamed.method.question, data)):
                yield encode(each)
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    return answer
