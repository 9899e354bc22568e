"""ASGI application, run by uvicorn: every request passes here, in the same steps.

    1 name it (request id)   4 find its endpoint       7 run the handler
    2 recognise the caller   5 check version, media    8 answer, as its door does
    3 read its version       6 ask the policy          9 log

Errors raised anywhere on the way become answers in step 8. What differs between APIs (versions,
the shape of errors, headers) is asked of the door that the path leads to.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dovetail.aio.pace import work_of_any_length
from dovetail.ledger import LedgerBusy
from dovetail.rest.auth.admission import CallerAdmission
from dovetail.rest.auth.hosts import refuse_unclear_host
from dovetail.rest.auth.identity import NOBODY, Identity
from dovetail.rest.server import health, metrics
from dovetail.rest.server.audit_log import AuditedWrite
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.door import Door
from dovetail.rest.server.errors import (
    HttpError,
    RefusedRequest,
    answer_of,
    bad_request,
    forget_frames,
    ledger_refusal,
)
from dovetail.rest.server.headers import (
    REQUEST_ID,
    accepts_json,
    cors_headers,
    protect,
    require_json,
    vary_by,
)
from dovetail.rest.server.http import JSON, Call, Query, Reply, Version
from dovetail.rest.server.inner_request import inner_request, target_of
from dovetail.rest.server.pieces.sending import PiecewiseResponse, StreamResponse
from dovetail.rest.server.routing import Endpoint
from dovetail.rest.server.site import Site, mounted
from dovetail.telemetry.tracing import TRACING, describe_request

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = structlog.get_logger("dovetail.rest")

SAFE_METHODS = {"GET", "HEAD", "OPTIONS", "QUERY"}
LONGEST_FOREIGN_ID = 100
"""Others' request ids are repeated in logs, which strangers shall not fill with them."""


class Application:
    """All doors over one backend."""

    def __init__(self, backend: ServerBackend, doors: Sequence[Door]) -> None:
        self._backend = backend
        self._site = Site(mounted(doors))
        self._admission = CallerAdmission(backend.authenticator, backend.rate_limiter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        started = time.perf_counter()
        request = Request(scope, receive)
        exchange = Exchange(request, self._backend, self._site, self._admission)
        with TRACING.request(request.method, request.headers) as span, work_of_any_length():
            try:
                reply = await exchange.answer()
            except ClientDisconnect:
                return
            exchange.audit(reply)
            seconds = time.perf_counter() - started
            await response(exchange, reply)(scope, receive, send)
            if not reply.is_stream:
                seconds = time.perf_counter() - started
            self._tell(exchange, reply, span, seconds)
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
                self._backend.start()
            await send({"type": f"{message['type']}.complete"})
            if ending:
                return

    @staticmethod
    def _tell(exchange: Exchange, reply: Reply, span: Span | None, seconds: float) -> None:
        method, route = exchange.request.method, exchange.route
        metrics.observe(method, route, reply.status, exchange.refusal, seconds)
        if exchange.is_unmade_claim:
            metrics.count_unmade_claim(reply.status)
        describe_request(
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
            query=exchange.query_for_log,
            status=reply.status,
            bytes=reply.length,
            milliseconds=round((time.perf_counter() - started) * 1000, 3),
            user=exchange.identity.user or None,
            request_id=exchange.request_id,
            global_request_id=exchange.global_request_id,
            version=exchange.version_text,
        )


def response(exchange: Exchange, reply: Reply) -> Response:
    headers = {**reply.headers, REQUEST_ID: exchange.request_id}
    versioning = exchange.door.version
    if exchange.version is not None and versioning.header is not None:
        headers[versioning.header] = versioning.answer(exchange.version)
        vary_by(headers, versioning.header)
    exchange.allow_origin(headers)
    protect(headers, exchange.door.headers)
    built: Response
    if exchange.request.method == "HEAD":
        headers["content-length"] = str(reply.length)
        built = Response(b"", reply.status, headers)
    elif reply.parts is None:
        built = Response(reply.body, reply.status, headers)
    else:
        kind = StreamResponse if reply.is_stream else PiecewiseResponse
        built = kind(reply.parts, reply.status, headers)
    if reply.content_type is not None:
        built.headers["content-type"] = reply.content_type
    for each in reply.cookies or exchange.cookies:
        built.headers.append("set-cookie", each)
    return built


class Exchange:
    """One request and what is known of it so far."""

    def __init__(
        self, request: Request, backend: ServerBackend, site: Site, admission: CallerAdmission
    ) -> None:
        self.request, self._backend, self._site, self._admission = request, backend, site, admission
        self.request_id = f"req-{uuid.uuid4()}"
        foreign_id = request.headers.get(REQUEST_ID)
        self.global_request_id = foreign_id and foreign_id[:LONGEST_FOREIGN_ID]
        self.identity: Identity = NOBODY
        self.version: Version | None = None
        self.route: str | None = None
        self.refusal: HttpError | None = None
        self.endpoint: Endpoint | None = None
        self.call: Call | None = None
        self._params: Mapping[str, str] = {}
        self._path, self.door, self._entrance = site.way(request)
        self.headers: Headers = request.headers
        """Of a caller that is recognised by something else, with what stands for it."""
        self.cookies: tuple[str, ...] = ()
        """That the entrance sets, unless the answer has some of its own."""
        self.client = request.client.host if request.client else None

    async def answer(self) -> Reply:
        try:
            self._check_host()
            if self.request.method == "OPTIONS" and self._backend.cors_origin:
                return Reply(200, content_type=None)
            return await self._handle()
        except HttpError as error:
            return await self._refuse(error)
        except LedgerBusy as error:
            log.warning("ledger busy", request_id=self.request_id, error=str(error))
            forget_frames(error)
            return await self._refuse(ledger_refusal(error))
        except ClientDisconnect:
            raise
        except Exception as error:
            answer = answer_of(error, self.door.errors)
            if answer is None:
                log.exception("unexpected error", request_id=self.request_id)
                answer = HttpError(500, f"See the log for {self.request_id}.")
            forget_frames(error)
            return await self._refuse(answer)

    async def _handle(self) -> Reply:
        await self._recognise()
        self.version = self._negotiated()
        self._check_content()
        endpoint, params, self.route = self._site.router.find(self.request.method, self._path)
        self.endpoint, self._params = endpoint, params
        self._check_endpoint(endpoint)
        self.call = call = Call(
            request=self.request,
            backend=self._backend,
            identity=self.identity,
            version=self.version,
            params=params,
            query=self._query(),
            dated_since=self.door.version.dated_since,
            ask=self._ask,
            admit=self._admit,
            count_stranger=self._count_stranger,
            admit_again=self._admit_again,
        )
        self._authorise(endpoint, call)
        if not endpoint.streams:
            call.body = await self._body()
        return await endpoint.handler(call)

    async def _admit(self, headers: Headers) -> Identity:
        self.identity = await self._admission.admit(headers, self.client)
        return self.identity

    def _count_stranger(self) -> Callable[[], None]:
        return self._admission.count_stranger(self.client)

    async def _admit_again(self) -> None:
        """Whatever has ended meanwhile, the token or the right, ends the answer. A session is not
        renewed for it: its cookies could not be set any more."""
        assert self.endpoint is not None
        assert self.call is not None
        await self._admit(self.headers)
        self._authorise(self.endpoint, self.call)

    async def _ask(self, target: str) -> Reply:
        """What GET of another address of this server answers the same caller."""
        inner = Exchange(
            inner_request(self.request, target, self._site.newest),
            *(self._backend, self._site, self._admission),
        )
        inner.identity = self.identity
        return await inner.answer()

    @property
    def is_unmade_claim(self) -> bool:
        wanted = self.endpoint is not None and self.endpoint.claims
        return wanted and (self.call is None or not self.call.is_claiming)

    def _check_host(self) -> None:
        refuse_unclear_host(self.request)
        if self._backend.allowed_hosts is not None and self._path not in health.PROBES:
            self._backend.allowed_hosts.refuse_foreign(self.request)

    async def _recognise(self) -> None:
        if self.identity is not NOBODY or self._is_public():
            return
        if self._entrance is not None:
            entry = await self._entrance.enter(self.request, self._path, self._backend)
            if entry is None:
                return
            self.headers, self.cookies = entry.headers, entry.cookies
        self.identity = await self._admission.admit(self.headers, self.client)

    def _is_public(self) -> bool:
        if self._path == "/metrics":
            return self._backend.metrics == "public"
        return self._path in self._site.public

    def _negotiated(self) -> Version:
        header = self.door.version.header
        asked = None if header is None else self.headers.get(header)
        return self.door.version.negotiate(asked)

    @property
    def version_text(self) -> str | None:
        return None if self.version is None else self.door.version.text(self.version) or None

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
        action = endpoint.action
        # Whose address names a project asks about that one, whatever else is said.
        project = call.params.get("project", call.query.get("project_id"))
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

    async def _refuse(self, error: HttpError) -> Reply:
        forget_frames(error)
        self.refusal = error
        refused = RefusedRequest(
            method=self.request.method,
            headers=self.request.headers,
            version=self.version,
            request_id=self.request_id,
            target=target_of(self.request),
            identity=self.identity,
            backend=self._backend,
        )
        return await self.door.problem(error, refused)

    @property
    def query_for_log(self) -> str:
        if self.door.is_private(self._path):
            return ""
        return str(self.request.scope["query_string"].decode("latin-1"))

    @property
    def _is_audited(self) -> bool:
        if self.endpoint is not None and (self.endpoint.audited or self.endpoint.reads):
            return self.endpoint.audited
        return self.request.method not in SAFE_METHODS

    def audit(self, reply: Reply) -> None:
        """Leave a line about a write, done or not."""
        if self._backend.audit_log is None or not self._is_audited:
            return
        self._backend.audit_log.record(
            AuditedWrite(
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
            vary_by(headers, "origin")
            asked, versions = self.request.headers, self._site.version_headers
            headers.update(cors_headers(origin, asked, versions))
