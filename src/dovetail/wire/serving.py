"""gRPC servers at a host and a port, plain or with TLS: how the SDK of controllers serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from dovetail.core.errors import DovetailError
from dovetail.wire.client import LARGEST_QUESTION_BYTES, TlsIdentity
from dovetail.wire.rpc import LARGEST_MESSAGE_BYTES, Served, offer

GRACE_SECONDS = 5.0
"""For questions under way when it ends."""

OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_QUESTION_BYTES),
    ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
    # Two servers at one port would get every other question.
    ("grpc.so_reuseport", 0),
)


class CannotListen(DovetailError):
    """An address at which nothing can be served."""


@asynccontextmanager
async def serving(
    host: str, port: int, served: Iterable[Served], identity: TlsIdentity | None = None
) -> AsyncIterator[int]:
    """Serve for the block; its port. Raises CannotListen."""
    server = grpc.aio.server(options=OPTIONS)
    offer(server, served)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if identity is None:
            bound = server.add_insecure_port(address)
        else:
            pair = (identity.key, identity.certificate)
            bound = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    except RuntimeError as error:
        raise CannotListen(f"cannot serve at {address}: {error}") from None
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(GRACE_SECONDS)
