"""Messages made of the text of a proto by protobuf itself, and servers of grpcio's own kind.

Nothing of Dovetail is in here: what a test builds with it is what a controller in another language
would say. Of the language, just what the contracts use: messages and enumerations of proto3.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
    "bool": Field.TYPE_BOOL,
    "int64": Field.TYPE_INT64,
}
BLOCK = re.compile(r"(message|enum) (\w+)\s*\{(.*?)\}", re.DOTALL)
FIELD = re.compile(r"(repeated )?(\w+) (\w+)\s*=\s*(\d+);")
VALUE = re.compile(r"(\w+)\s*=\s*(\d+);")
PACKAGE = re.compile(r"package ([\w.]+);")


def messages(proto: str) -> dict[str, Any]:
    """The classes that protobuf makes of it, by name."""
    text = re.sub(r"//[^\n]*", "", proto)
    package = found[1] if (found := PACKAGE.search(text)) else ""
    file = descriptor_pb2.FileDescriptorProto(name="given.proto", package=package, syntax="proto3")
    blocks = BLOCK.findall(text)
    prefix = f".{package}." if package else "."
    kinds = {name: kind for kind, name, _ in blocks}
    for kind, name, body in blocks:
        if kind == "enum":
            values = file.enum_type.add(name=name).value
            for each, number in VALUE.findall(body):
                values.add(name=each, number=int(number))
            continue
        message = file.message_type.add(name=name)
        for repeated, of, field_name, number in FIELD.findall(body):
            field = message.field.add(name=field_name, number=int(number))
            field.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
            if of in SCALARS:
                field.type = SCALARS[of]
            else:
                is_enum = kinds[of] == "enum"
                field.type = Field.TYPE_ENUM if is_enum else Field.TYPE_MESSAGE
                field.type_name = prefix + of
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{prefix}{name}"[1:]))
        for name, kind in kinds.items()
        if kind == "message"
    }


Handler = Callable[[bytes], Awaitable[bytes]]
"""Of raw bytes."""


@asynccontextmanager
async def server(
    handlers: Mapping[str, Handler],
    *,
    certificate: bytes = b"",
    key: bytes = b"",
    authority: bytes = b"",
) -> AsyncIterator[int]:
    """A gRPC server on loopback that answers these paths; its port.

    With an authority, clients have to show a certificate of its.
    """
    made = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    for path, handler in handlers.items():
        _, service, method = path.split("/")

        async def answer(data: bytes, _: Any, handler: Handler = handler) -> bytes:
            return await handler(data)

        made.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    service, {method: grpc.unary_unary_rpc_method_handler(answer)}
                )
            ]
        )
    if certificate:
        credentials = grpc.ssl_server_credentials(
            [(key, certificate)], authority or None, require_client_auth=bool(authority)
        )
        port = made.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    try:
        yield port
    finally:
        await made.stop(None)
