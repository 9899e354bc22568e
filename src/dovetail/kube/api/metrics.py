"""Metrics of the API client, counted by its session. Labels take few values, known beforehand."""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, SECONDS

CALLS = METRICS.histogram(
    "kube_call_duration_seconds",
    "Calls of the API server by verb and class of status code; none: no answer.",
    SECONDS,
    "verb",
    "kind",
    "status",
)
