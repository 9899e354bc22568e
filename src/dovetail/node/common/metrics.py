"""The registry of the agent's metrics; the modules that count declare theirs in it."""

from __future__ import annotations

from dovetail.telemetry import metrics

SECONDS = (*metrics.SECONDS, 30)
"""Buckets: plugins may take longer than requests of a server."""

AGENT_METRICS = metrics.Metrics("dovetail_agent_")
