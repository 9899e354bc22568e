"""HTTP serving for the daemons of `kube/`: the one module here that knows the web framework.

The daemon serves metrics and health by it, and the extender, which says only what answers what.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dovetail.config.listening import bound_socket
from dovetail.core.errors import DovetailError
from dovetail.telemetry.metrics import CONTENT_TYPE, METRICS

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - probes and collectors come from elsewhere
DRAIN_SECONDS = 5
KEEP_ALIVE_SECONDS = 120
"""Of idle connections. API servers and kube-schedulers close theirs after 90 seconds: were we to
close one first, a question that is on its way would be lost, and nobody asks it twice."""

Application = Starlette

Answer = Callable[[bytes], Awaitable[bytes]]
"""The body of an answer to the body of a question. Raises NotUnderstood."""


class BadListening(DovetailError):
    """An address or certificates that cannot be served with."""


class NotUnderstood(DovetailError):
    """A question that is none, and why."""


class TooLarge(DovetailError):
    """A question of more bytes than are taken."""


class EmbeddedServer(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address, so that a wrong one is told before anything runs."""
    try:
        return bound_socket(host, port)
    except OSError as error:
        raise BadListening(f"cannot listen on {host}, port {port}: {error}") from error


async def serve(app: Application, bound: socket.socket, tls: ssl.SSLContext | None = None) -> None:
    """Until cancelled; requests that have begun are answered first."""
    config = uvicorn.Config(
        app,
        ssl_context_factory=(lambda *_: tls) if tls is not None else None,
        lifespan="off",
        ws="none",
        access_log=False,
        server_header=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = EmbeddedServer(config)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving


def tls_of(cert: str | None, key: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    """None without a certificate. Raises BadListening."""
    if cert is None and key is None and client_ca is None:
        return None
    if cert is None or key is None:
        raise BadListening("TLS needs both a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        files = ", ".join(filter(None, (cert, key, client_ca)))
        raise BadListening(f"TLS with {files}: {error}") from error
    return context


def monitoring(is_ready: Callable[[], bool]) -> Application:
    """`/metrics`, `/healthz` (it runs) and `/readyz` (it knows the cluster)."""

    async def metrics(_: Request) -> Response:
        return Response(METRICS.page(), media_type=CONTENT_TYPE)

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def readiness(_: Request) -> Response:
        return PlainTextResponse("ok") if is_ready() else PlainTextResponse("not yet", 503)

    routes = [
        Route("/metrics", metrics),
        Route("/healthz", health),
        Route("/readyz", readiness),
    ]
    return Starlette(routes=routes)


def json_service(answers: Mapping[str, Answer], largest_bytes: int) -> Application:
    """POST of JSON to these paths, answered with JSON; a question has so many bytes at most."""

    def endpoint(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            found = await answer(await body_of(request, largest_bytes))
            return Response(found, media_type="application/json")

        return answered

    routes = [Route(path, endpoint(each), methods=["POST"]) for path, each in answers.items()]
    handlers = {NotUnderstood: refusal(400), TooLarge: refusal(413)}
    return Starlette(routes=routes, exception_handlers=handlers)


async def body_of(request: Request, largest_bytes: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest_bytes:
            raise TooLarge(f"more than {largest_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def refusal(code: int) -> Callable[[Request, Exception], Response]:
    return lambda _, error: Response(str(error), code, media_type="text/plain")
