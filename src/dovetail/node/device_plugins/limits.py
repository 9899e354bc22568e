"""Deadlines and limits of device plugins: one that hangs or floods costs nobody else anything."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.node.wire.device_plugin import ALLOCATE, PRE_START_CONTAINER
from dovetail.wire.rpc import Method

MOST_RESOURCES = 256
"""Registrations that are kept."""

MOST_DEVICES = 20_000
"""Of one list: that many are read in a fraction of a second."""

LONGEST_ID_BYTES = 1024
"""Kubernetes documents 63 characters and does not insist."""

LARGEST_NODE = 1023
"""The kernel numbers no NUMA node higher."""

PACE_SECONDS = 0.05
"""After each list: a plugin that sends without end is read at this pace, and waits."""

GONE_SECONDS = 300.0
"""How long a plugin may be without its socket before it counts as uninstalled."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 60.0

STEADY_SECONDS = 10.0
"""After which a plugin that was up is not taken for one that keeps failing."""


class DevicePluginDeadlines(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds."""

    call: float = 10.0
    allocate: float = 30.0
    """The kubelet waits for ever: some plugins program the device in it."""
    pre_start: float = 30.0
    """The kubelet's."""
    first_list: float = 30.0
    """From the question for devices to the first list."""

    def of(self, method: Method[Any, Any]) -> float:
        if method is PRE_START_CONTAINER:
            return self.pre_start
        return self.allocate if method is ALLOCATE else self.call
