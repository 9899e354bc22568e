"""Names of resources: what those of devices are called where the admission asks for them.

A device plugin's `vendor.com/gpu` is `class:vendor.com/gpu` there: a pod may ask the kubelet for
the same resource besides, and that is none of the agent's business.
"""

from __future__ import annotations

PREFIX = "class:"

PAGES = "hugepages-"
"""Of the agent's own devices: pools of pages, of which many pods have some."""

OWN = {"nic": "NIC"}
"""The agent's own devices, by what their plugins register for where that is another name."""


def class_resource(resource: str) -> str:
    return PREFIX + resource


def is_class_resource(name: str) -> bool:
    return name.startswith(PREFIX)


def device_resource(name: str) -> str:
    """As the device plugin calls it; of the agent's own plugins, as they are called."""
    return name.removeprefix(PREFIX)


def requested_name(resource: str) -> str:
    """Under which a container asks for a device of that origin: device plugins have a slash."""
    return class_resource(resource) if "/" in resource else OWN.get(resource, resource)


def is_shared(resource: str) -> bool:
    """Whether a device is a pool that pods have parts of."""
    return resource.startswith(PAGES)
