"""GET /metrics for Prometheus, and what the application counts about every request."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from dovetail import __version__
from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.service.metrics import CLAIMS
from dovetail.telemetry.metrics import CONTENT_TYPE, METRICS, SECONDS

ACTION = "dovetail:metrics:show"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

BUILD = METRICS.gauge("build_info", "The version that runs; always 1.", "version")
REQUESTS = METRICS.histogram(
    "request_duration_seconds",
    "From the head of a request to the end of its answer.",
    SECONDS,
    "method",
    "route",
    "status",
)
REFUSALS = METRICS.counter(
    "refused_requests_total",
    "Requests answered with an error, by status code; 409 is a conflict.",
    "route",
    "status",
)

BUILD.labels(__version__).set(1)


async def show(call: Call) -> Reply:
    backend = call.backend
    if backend.metrics == "off":
        raise not_found()
    if backend.metrics == "guarded" and not backend.rules.allows(ACTION, call.identity):
        raise HttpError(403, f"Policy does not allow {ACTION} to be performed.")
    return Reply(200, METRICS.page(), content_type=CONTENT_TYPE)


def observe(
    method: str, route: str | None, status: int, refusal: HttpError | None, seconds: float
) -> None:
    """Count one answered request; `route` is None if no endpoint was found for it."""
    known = method if method in METHODS else "other"
    observer(known, route or "none", f"{status // 100}xx")(seconds)
    if refusal is not None:
        REFUSALS.labels(route or "none", str(status)).inc()


@lru_cache(maxsize=1024)
def observer(method: str, route: str, status: str) -> Callable[[float], None]:
    return REQUESTS.labels(method, route, status).observe


def count_unmade_claim(status: int) -> None:
    """A request for a claim that was turned away before `service.claims` saw it."""
    CLAIMS.labels("invalid" if status < 500 else "failed").inc()
