"""What the span of a request says about it, in OpenTelemetry's words for HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Span


def describe(
    span: Span | None, *, method: str, path: str, route: str | None, status: int, request_id: str
) -> None:
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
