"""The extender over HTTP: three routes, JSON in and out."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.wire import Args, BindingArgs

T = TypeVar("T")

ARGS = msgspec.json.Decoder(Args)
BINDING = msgspec.json.Decoder(BindingArgs)
LARGEST = 64 * 2**20
"""Bytes of a question: five thousand whole nodes, where names alone were not enough."""


class TooLarge(Exception):
    """A question of more than LARGEST bytes."""


def application(extender: Extender) -> Starlette:
    async def ask_filter(request: Request) -> Response:
        return answer(extender.filter(ARGS.decode(await body(request))))

    async def ask_prioritize(request: Request) -> Response:
        return answer(extender.prioritize(ARGS.decode(await body(request))))

    async def ask_bind(request: Request) -> Response:
        return answer(await extender.bind(BINDING.decode(await body(request))))

    routes = [
        Route("/filter", ask_filter, methods=["POST"]),
        Route("/prioritize", ask_prioritize, methods=["POST"]),
        Route("/bind", ask_bind, methods=["POST"]),
    ]
    handlers = {msgspec.MsgspecError: not_understood, TooLarge: too_large}
    return Starlette(routes=routes, exception_handlers=handlers)


async def body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise TooLarge
        parts.append(part)
    return b"".join(parts)


def answer(found: object) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")


def not_understood(_: Request, error: Exception) -> Response:
    return Response(f"not a message of extender API v1: {error}", 400, media_type="text/plain")


def too_large(_: Request, error: Exception) -> Response:
    del error
    return Response(f"more than {LARGEST} bytes", 413, media_type="text/plain")
