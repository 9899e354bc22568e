"""The ASGI application: every request passes here, in the same steps.

    1 name it (request id)   4 find its endpoint       7 run the handler
    2 recognise the caller   5 check version, media    8 answer, in the dialect asked for
    3 read its version       6 ask the policy          9 log

Errors raised anywhere on the way become answers in step 8.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dovetail.core.errors import Malformed, NotFound
from dovetail.ledger import LedgerBusy
from dovetail.rest.auth.admission import Gate
from dovetail.rest.auth.identity import NOBODY, Identity
from dovetail.rest.dovetail.routes import OWN_ROUTES
from dovetail.rest.placement import versions
from dovetail.rest.placement.routes import ROUTES
from dovetail.rest.server import errors, metrics, tracing
from dovetail.rest.server.audit_log import Write
from dovetail.rest.server.backend import Backend
from dovetail.rest.server.cors import cors_headers
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import JSON, Call, Query, Reply, Version
from dovetail.rest.server.media import accepts_json, require_json
from dovetail.rest.server.routing import Endpoint, Router
from dovetail.rest.server.security_headers import protect
from dovetail.telemetry.tracing import TRACING

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = structlog.get_logger("dovetail.rest")

OWN_PREFIX = "/dovetail/"
ALL_ROUTES = {**ROUTES, **OWN_ROUTES}
PUBLIC = frozenset(
    path for path, methods in ALL_ROUTES.items() if all(one.public for one in methods.values())
)
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
LONGEST_FOREIGN_ID = 100
"""Others' request ids are repeated in logs, which strangers shall not fill with them."""


class Application:
    """Placement's API and Dovetail's own, over one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._router = Router(ALL_ROUTES)
        self._gate = Gate(backend.authenticator, backend.rate_limiter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        started = time.perf_counter()
        request = Request(scope, receive)
        exchange = Exchange(request, self._backend, self._router, self._gate)
        with TRACING.request(request.method, request.headers) as span:
            try:
                reply = await exchange.answer()
            except ClientDisconnect:
                return
            exchange.audit(reply)
            await response(exchange, reply)(scope, receive, send)
            self._tell(exchange, reply, span, time.perf_counter() - started)
        self._log(exchange, reply, started)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Serve until told to stop; then nothing acknowledged may be left unwritten."""
        while True:
            message = await receive()
            ending = message["type"] == "lifespan.shutdown"
            if ending:
                await self._backend.close()
                TRACING.finish()
            else:
                self._backend.reload_on_hangup()
            await send({"type": f"{message['type']}.complete"})
            if ending:
                return

    @staticmethod
    def _tell(exchange: Exchange, reply: Reply, span: Span | None, seconds: float) -> None:
        method, route = exchange.request.method, exchange.route
        metrics.observe(method, route, reply.status, exchange.refusal, seconds)
        if exchange.is_unmade_claim:
            metrics.count_unmade_claim(reply.status)
        tracing.describe(
            span,
            method=method,
            path=exchange.request.scope["path"],
            route=route,
            status=reply.status,
            request_id=exchange.request_id,
        )

    @staticmethod
    def _log(exchange: Exchange, reply: Reply, started: float) -> None:
        request = exchange.request
        log.info(
            "request",
            method=request.method,
            path=request.scope["path"],
            query=request.scope["query_string"].decode("latin-1"),
            status=reply.status,
            bytes=len(reply.body),
            milliseconds=round((time.perf_counter() - started) * 1000, 3),
            user=exchange.identity.user or None,
            request_id=exchange.request_id,
            global_request_id=exchange.global_request_id,
            version=None if exchange.version is None else versions.shown(exchange.version),
        )


def response(exchange: Exchange, reply: Reply) -> Response:
    headers = {**reply.headers, "x-openstack-request-id": exchange.request_id}
    if exchange.version is not None:
        headers[versions.HEADER] = f"{versions.SERVICE} {versions.shown(exchange.version)}"
        headers["vary"] = versions.HEADER
    exchange.allow_origin(headers)
    protect(headers, own=exchange.is_own)
    built = (
        Response(reply.body, reply.status, headers)
        if reply.parts is None
        else StreamingResponse(reply.parts, reply.status, headers)
    )
    if reply.content_type is not None:
        built.headers["content-type"] = reply.content_type
    return built


class Exchange:
    """One request and what is known of it so far."""

    def __init__(self, request: Request, backend: Backend, router: Router, gate: Gate) -> None:
        self.request, self._backend, self._router, self._gate = request, backend, router, gate
        self.request_id = f"req-{uuid.uuid4()}"
        foreign_id = request.headers.get("x-openstack-request-id")
        self.global_request_id = foreign_id and foreign_id[:LONGEST_FOREIGN_ID]
        self.identity: Identity = NOBODY
        self.version: Version | None = None
        self.route: str | None = None
        self.refusal: HttpError | None = None
        self.endpoint: Endpoint | None = None
        self.call: Call | None = None
        self._params: Mapping[str, str] = {}
        self._path = raw_path(request)
        self.is_own = self._path.startswith(OWN_PREFIX)
        self.client = request.client.host if request.client else None

    async def answer(self) -> Reply:
        if self.request.method == "OPTIONS" and self._backend.cors_origin:
            return Reply(200, content_type=None)
        try:
            return await self._handle()
        except HttpError as error:
            return self._refuse(error)
        except LedgerBusy as error:
            # The reason names hosts and users of the database, which is nobody's business here.
            log.warning("ledger busy", request_id=self.request_id, error=str(error))
            busy = "The ledger cannot be used now."
            return self._refuse(HttpError(503, busy, headers={"retry-after": "1"}))
        except NotFound as error:
            return self._refuse(HttpError(404, str(error)))
        except Malformed as error:
            return self._refuse(HttpError(400, str(error)))
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("unexpected error", request_id=self.request_id)
            return self._refuse(HttpError(500, f"See the log for {self.request_id}."))

    async def _handle(self) -> Reply:
        await self._recognise()
        self.version = versions.asked(self.request.headers.get(versions.HEADER))
        self._check_content()
        endpoint, params, self.route = self._router.find(self.request.method, self._path)
        self.endpoint, self._params = endpoint, params
        self._check_endpoint(endpoint)
        self.call = call = Call(
            request=self.request,
            backend=self._backend,
            identity=self.identity,
            version=self.version,
            params=params,
            query=self._query(),
        )
        self._authorise(endpoint, call)
        if not endpoint.streams:
            call.body = await self._body()
        return await endpoint.handler(call)

    @property
    def is_unmade_claim(self) -> bool:
        wanted = self.endpoint is not None and self.endpoint.claims
        return wanted and (self.call is None or not self.call.is_claiming)

    async def _recognise(self) -> None:
        if not self._is_public():
            self.identity = await self._gate.admit(self.request.headers, self.client)

    def _is_public(self) -> bool:
        if self._path == "/metrics":
            return self._backend.metrics == "public"
        return self._path in PUBLIC

    def _check_content(self) -> None:
        length = self.request.headers.get("content-length", "")
        if length and not length.isdecimal():
            raise bad_request("content-length header must be an integer")
        if length.strip("0") and not self.request.headers.get("content-type"):
            raise bad_request("content-type header required when content-length > 0")

    def _check_endpoint(self, endpoint: Endpoint) -> None:
        assert self.version is not None
        if self.version < endpoint.since:
            raise HttpError(endpoint.missing)
        if endpoint.gives_json and not accepts_json(self.request.headers.get("accept", "")):
            raise HttpError(406, f"Only {JSON} is provided")
        if endpoint.takes_json:
            require_json(self.request.headers)

    def _query(self) -> Query:
        raw = self.request.scope["query_string"]
        if b"%00" in raw or "%00" in self._path:
            raise bad_request("NUL characters are not allowed in an address.")
        if len(raw) > self._backend.limits.query_bytes:
            raise HttpError(
                414, f"The query string may have {self._backend.limits.query_bytes} bytes."
            )
        try:
            return Query(raw)
        except (UnicodeDecodeError, ValueError) as error:
            raise bad_request(f"Invalid query string parameters: {error}") from error

    def _authorise(self, endpoint: Endpoint, call: Call) -> None:
        action, project = endpoint.action, call.query.get("project_id")
        if action is not None and not self._backend.rules.allows(action, self.identity, project):
            raise HttpError(403, f"Policy does not allow {action} to be performed.")

    async def _body(self) -> bytes:
        limit = self._backend.limits.body_bytes
        parts, size = [], 0
        async for part in self.request.stream():
            size += len(part)
            if size > limit:
                raise HttpError(413, f"The body of a request may have {limit} bytes.")
            parts.append(part)
        return b"".join(parts)

    def _refuse(self, error: HttpError) -> Reply:
        self.refusal = error
        if self.is_own:
            return errors.problem(error, self.request_id)
        headers = self.request.headers
        wanted = headers.get("content-type") if error.status == 415 else headers.get("accept")
        return errors.reply(
            error,
            method=self.request.method,
            media=wanted or "None",
            accept=headers.get("accept", ""),
            version=self.version,
            request_id=self.request_id,
        )

    def audit(self, reply: Reply) -> None:
        """Leave a line about a write, done or not."""
        reads = self.request.method in SAFE_METHODS or (self.endpoint and self.endpoint.reads)
        if self._backend.audit_log is None or reads:
            return
        self._backend.audit_log.record(
            Write(
                identity=self.identity,
                client=self.client,
                method=self.request.method,
                path=self._path,
                action=self.endpoint.action if self.endpoint else None,
                objects=self._params,
                status=reply.status,
                request_id=self.request_id,
                global_request_id=self.global_request_id,
            )
        )

    def allow_origin(self, headers: dict[str, str]) -> None:
        """Tell browsers whether a page may have the answer, and caches that it depends on that."""
        origin = self._backend.cors_origin
        if origin is not None:
            headers["vary"] = f"{headers['vary']}, origin" if "vary" in headers else "origin"
            headers.update(cors_headers(origin, self.request.headers))


def raw_path(request: Request) -> str:
    """The path as sent: names in it may hold encoded slashes."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1") or "/"
