"""gRPC clients over TCP: where a server is, how it is reached, and what can go wrong with a call.

`service/intents/controllers` calls controllers of others by it. A channel goes to the host and port
that were given and nowhere else: no proxy of the environment, no service configuration from DNS,
and no other kind of address that a host's name could be taken for. Answers come uncompressed and
have a largest size, so that no server can make its client swell.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

import grpc
import grpc.aio
import msgspec

from dovetail.core.errors import DovetailError, Malformed
from dovetail.wire.codec import BadMessage
from dovetail.wire.rpc import LARGEST_MESSAGE_BYTES, A, Method, Q, call

LARGEST_QUESTION_BYTES = 64 * 2**20
LARGEST_PORT = 65535
LONGEST_WORDS = 500
"""Characters of what a server says about a failure."""

HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")

OPTIONS = (
    ("grpc.max_send_message_length", LARGEST_QUESTION_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    # A question is asked once: whether it is asked again is for those who know what it does.
    ("grpc.enable_retries", 0),
    # Only the identity: what is compressed can be large all the same.
    ("grpc.compression_enabled_algorithms_bitset", 1),
)


class TlsIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to servers that ask: a certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a server proves who it is, and we to it."""

    authority: bytes = b""
    """Certificates that may have signed the server's, as PEM; empty: those that gRPC brings."""
    server_name: str = ""
    """What its certificate is for, if that is not the host."""
    identity: TlsIdentity | None = None


class GrpcEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    tls: TlsOptions | None = None

    @property
    def target(self) -> str:
        """As gRPC calls it, with its kind: a name is never taken for another kind of address.

        Raises Malformed.
        """
        if not 0 < self.port <= LARGEST_PORT:
            raise Malformed(f"{self.port} is no port")
        try:
            address = ipaddress.ip_address(self.host.strip("[]"))
        except ValueError:
            if len(self.host) > 253 or not HOST_NAME.fullmatch(self.host):
                raise Malformed(f"{self.host!r} is no name or address of a host") from None
            return f"dns:///{self.host}:{self.port}"
        if address.version == 4:
            return f"ipv4:{address}:{self.port}"
        return f"ipv6:[{address}]:{self.port}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class CallFailure(StrEnum):
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    FAILED = "failed"
    """It answered with an error."""
    GARBAGE = "garbage"
    """It answered with what is no answer."""


class EndpointError(DovetailError):
    """No answer of a server that is of any use."""

    def __init__(self, failure: CallFailure, words: str) -> None:
        self.failure = failure
        super().__init__(words)


@asynccontextmanager
async def connected(
    endpoint: GrpcEndpoint, largest_answer_bytes: int = LARGEST_MESSAGE_BYTES
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel for the block; that nobody is there is told by the first call. Raises Malformed."""
    channel = _channel(endpoint, largest_answer_bytes)
    try:
        yield channel
    finally:
        await channel.close()


async def ask(channel: grpc.aio.Channel, method: Method[Q, A], question: Q, seconds: float) -> A:
    """The answer, within so many seconds, connecting included. Raises EndpointError."""
    try:
        return await call(channel, method, question, seconds)
    except BadMessage as error:
        raise EndpointError(CallFailure.GARBAGE, f"{method.name}: {error}") from None
    except grpc.aio.AioRpcError as error:
        raise _told(method, error, seconds) from None


def _told(method: Method[Any, Any], error: grpc.aio.AioRpcError, seconds: float) -> EndpointError:
    said = " ".join((error.details() or "").split())[:LONGEST_WORDS]
    code = error.code()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        words = f"{method.name}: no answer within {seconds:g} s"
        return EndpointError(CallFailure.TIMED_OUT, words)
    if code is grpc.StatusCode.UNAVAILABLE:
        return EndpointError(CallFailure.UNREACHABLE, f"{method.name}: {said or 'nobody is there'}")
    words = f"{method.name}: {code.name}: {said}" if said else f"{method.name}: {code.name}"
    return EndpointError(CallFailure.FAILED, words)


def _channel(endpoint: GrpcEndpoint, largest_answer_bytes: int) -> grpc.aio.Channel:
    target = endpoint.target
    options = (*OPTIONS, ("grpc.max_receive_message_length", largest_answer_bytes))
    if endpoint.tls is None:
        return grpc.aio.insecure_channel(target, options)
    tls, identity = endpoint.tls, endpoint.tls.identity
    credentials = grpc.ssl_channel_credentials(
        tls.authority or None,
        identity.key if identity else None,
        identity.certificate if identity else None,
    )
    named = (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()
    return grpc.aio.secure_channel(target, credentials, (*options, *named))
