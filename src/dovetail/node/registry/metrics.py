"""Metrics of resource plugins: whether they are there, and how their calls go."""

from __future__ import annotations

from dovetail.node.common.metrics import AGENT_METRICS, SECONDS

PLUGIN_CALLS = AGENT_METRICS.histogram(
    "plugin_call_seconds",
    "Calls of plugins, by method and result: ok, down, timeout, refused or garbage.",
    SECONDS,
    "resource",
    "method",
    "result",
)
PLUGINS_UP = AGENT_METRICS.gauge(
    "plugin_up", "Whether the plugin of a resource is there.", "resource"
)
