"""Metrics of controllers: how their calls end, and how long they take."""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, SECONDS

CALLS = METRICS.counter(
    "controller_calls_total",
    "Calls of placement and action controllers: answered, timed_out, unreachable, failed, garbage.",
    "kind",
    "outcome",
)
DURATION = METRICS.histogram(
    "controller_call_duration_seconds", "How long controllers take to answer.", SECONDS, "kind"
)
