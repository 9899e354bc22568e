"""Metrics of device plugins: whether they are there, what they have, and how their calls go."""

from __future__ import annotations

from dovetail.node.common.metrics import AGENT_METRICS, SECONDS

DEVICE_PLUGIN_CALLS = AGENT_METRICS.histogram(
    "device_plugin_call_seconds",
    "Calls of device plugins, by method and result: ok, down, timeout, refused, unimplemented or "
    "garbage.",
    SECONDS,
    "resource",
    "method",
    "result",
)
DEVICE_PLUGINS_UP = AGENT_METRICS.gauge(
    "device_plugin_up", "Whether the device plugin of a resource is there.", "resource"
)
DEVICE_PLUGIN_DEVICES = AGENT_METRICS.gauge(
    "device_plugin_devices",
    "Devices of a device plugin, by state: healthy, unhealthy, held_by_class or held_by_kubelet.",
    "resource",
    "state",
)

STATES = ("healthy", "unhealthy", "held_by_class", "held_by_kubelet")


def forget(resource: str) -> None:
    """Of a plugin that was uninstalled."""
    DEVICE_PLUGINS_UP.remove(resource)
    for state in STATES:
        DEVICE_PLUGIN_DEVICES.remove(resource, state)
