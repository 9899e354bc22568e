"""The extender's protocol over HTTP: three paths, JSON in and out; the daemon serves it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.wire import Args, BindingArgs
from dovetail.kube.runtime.serving import Application, NotUnderstood, json_service

T = TypeVar("T")

ARGS = msgspec.json.Decoder(Args)
BINDING = msgspec.json.Decoder(BindingArgs)
LARGEST_BYTES = 64 * 2**20
"""Of a question: five thousand whole nodes, where names alone were not enough."""


def application(extender: Extender) -> Application:
    encode = msgspec.json.encode

    async def answer_filter(body: bytes) -> bytes:
        return encode(extender.filter(understood(ARGS, body)))

    async def answer_prioritize(body: bytes) -> bytes:
        return encode(extender.prioritize(understood(ARGS, body)))

    async def answer_bind(body: bytes) -> bytes:
        return encode(await extender.bind(understood(BINDING, body)))

    answers = {"/filter": answer_filter, "/prioritize": answer_prioritize, "/bind": answer_bind}
    return json_service(answers, LARGEST_BYTES)


def understood(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise NotUnderstood(f"not a message of extender API v1: {error}") from error
