"""GET /metrics for Prometheus, and what is counted about every request."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from dovetail import __version__
from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply
from dovetail.telemetry.metrics import BUILD, CLAIMS, REFUSALS, REGISTRY, REQUESTS

ACTION = "dovetail:metrics:show"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where workers leave their numbers for whichever of them is asked."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUILD.labels(__version__).set(1)


async def show(call: Call) -> Reply:
    backend = call.backend
    if backend.metrics == "off":
        raise not_found()
    if backend.metrics == "guarded" and not backend.rules.allows(ACTION, call.identity):
        raise HttpError(403, f"Policy does not allow {ACTION} to be performed.")
    return Reply(200, generate_latest(registry()), content_type=CONTENT_TYPE_LATEST)


def registry() -> CollectorRegistry:
    if SHARED_FOLDER not in os.environ:
        return REGISTRY
    shared = CollectorRegistry()
    MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
    return shared


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
