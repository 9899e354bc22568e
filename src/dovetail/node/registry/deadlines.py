"""Timeouts of plugins, in seconds. The defaults are the kubelet's."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.node.wire.resource_plugin import PRE_START_CONTAINER
from dovetail.wire.rpc import Method

GONE_SECONDS = 300.0
"""How long a plugin may be away before it counts as uninstalled: its resources and name stay."""


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    info: float = 1.0
    notify: float = 5.0
    call: float = 10.0
    pre_start: float = 30.0

    def of(self, method: Method[Any, Any]) -> float:
        return self.pre_start if method is PRE_START_CONTAINER else self.call
