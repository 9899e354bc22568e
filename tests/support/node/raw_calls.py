"""gRPC calls of plain bytes, for tests that send what no client of ours would."""

from __future__ import annotations

import grpc.aio


def unary(channel: grpc.aio.Channel, path: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary(path)


def stream(channel: grpc.aio.Channel, path: str) -> grpc.aio.UnaryStreamMultiCallable[bytes, bytes]:
    return channel.unary_stream(path)
