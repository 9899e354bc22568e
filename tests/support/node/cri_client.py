"""A client of CRI that shares no declaration with ours: containerd carries the interface itself.

A program in Go holds each description of messages as a compressed FileDescriptorProto; we look
for the one of `runtime.v1` in the binary.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
SECONDS = 60


class Described(NamedTuple):
    question: Any
    answer: Any


@cache
def methods(binary: Path) -> dict[str, Described]:
    """By path of the method."""
    file = _description(binary.read_bytes())
    del file.dependency[:]  # options for generators only
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)

    def message(name: str) -> Any:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name.lstrip(".")))

    return {
        f"/{file.package}.{service.name}/{method.name}": Described(
            message(method.input_type), message(method.output_type)
        )
        for service in file.service
        for method in service.method
    }


def _description(data: bytes) -> descriptor_pb2.FileDescriptorProto:
    at = data.find(GZIP)
    while at >= 0:
        try:
            plain = zlib.decompressobj(31).decompress(data[at : at + 2**20])
            file = descriptor_pb2.FileDescriptorProto.FromString(plain)
        except (zlib.error, DecodeError):
            pass
        else:
            if file.package == "runtime.v1" and file.service:
                return file
        at = data.find(GZIP, at + 1)
    raise LookupError("that binary holds no description of runtime.v1")


class Client:
    """`await client("StopContainer", container_id=...)`."""

    def __init__(
        self, socket: Path, binary: Path = Path("/usr/bin/containerd"), *, seconds: float = SECONDS
    ) -> None:
        """`seconds`: for a call."""
        self._seconds = seconds
        self.channel = grpc.aio.insecure_channel(
            f"unix:{socket}", [("grpc.use_local_subchannel_pool", 1)]
        )
        self._methods = methods(binary)

    async def __call__(self, method: str, /, service: str = "RuntimeService", **fields: Any) -> Any:
        path = f"/runtime.v1.{service}/{method}"
        described = self._methods[path]
        asking: Any = self.channel.unary_unary(
            path, described.question.SerializeToString, described.answer.FromString
        )
        return await asking(
            json_format.ParseDict(fields, described.question()), timeout=self._seconds
        )

    async def stream(self, path: str, body: bytes = b"") -> AsyncIterator[bytes]:
        """Of a method of whatever kind, the raw answers."""
        calling: Any = self.channel.unary_stream(path)
        async for each in calling(body, timeout=self._seconds):
            yield each
