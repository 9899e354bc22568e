"""Spans, by OpenTelemetry's API; off, and not even imported, unless the environment asks for them.

The variables are OpenTelemetry's own (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_EXPORTER`,
`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, ...). The SDK comes with the extra `otel`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

NAME = "dovetail"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
FLUSH_SECONDS = 3
OFF: AbstractContextManager[None] = nullcontext()


class Tracing:
    """The process's tracer, if it has one."""

    def __init__(self) -> None:
        self._tracer: Tracer | None = None
        self._flush: Callable[[], object] | None = None

    def use(self, tracer: Tracer | None, flush: Callable[[], object] | None = None) -> None:
        self._tracer, self._flush = tracer, flush

    def finish(self) -> None:
        """Send what is still here, but do not wait long for a collector that is away."""
        if self._flush is not None:
            sender = threading.Thread(target=self._flush, daemon=True)
            sender.start()
            sender.join(FLUSH_SECONDS)

    @property
    def on(self) -> bool:
        return self._tracer is not None

    def request(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[Span | None]:
        """The span of a request, which goes on with the trace of the caller, if there is one."""
        if self._tracer is None:
            return OFF
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        return self._tracer.start_as_current_span(
            method, context=extract(headers), kind=SpanKind.SERVER
        )

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return OFF if self._tracer is None else self._tracer.start_as_current_span(name)


TRACING = Tracing()


def asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "")
    return exporter != "none" and bool(exporter or any(environment.get(one) for one in ENDPOINTS))


def start() -> None:
    """Send spans where the environment says; raises ImportError without the extra `otel`."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # The variables say more than this; the name is for those who gave none.
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {SERVICE_NAME: NAME}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    TRACING.use(trace.get_tracer(NAME), provider.force_flush)


def describe_request(
    span: Span | None, *, method: str, path: str, route: str | None, status: int, request_id: str
) -> None:
    """Tell the span of a request about it, in OpenTelemetry's words for HTTP."""
    if span is None:
        return
    from opentelemetry.trace import StatusCode

    span.update_name(f"{method} {route}" if route else method)
    span.set_attributes(
        {
            "http.request.method": method,
            "url.path": path,
            "http.response.status_code": status,
            "dovetail.request_id": request_id,
        }
    )
    if route is not None:
        span.set_attribute("http.route", route)
    if status >= 500:
        span.set_status(StatusCode.ERROR)
