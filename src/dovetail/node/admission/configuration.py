"""What the admission gate goes by: topology policy, scope, names, and what to do in an outage."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.merge import Distances
from dovetail.node.hints.policy import TopologyOptions, TopologyPolicy


class Scope(StrEnum):
    CONTAINER = "container"
    POD = "pod"
    """All containers of a pod on the same nodes."""


class Outage(StrEnum):
    """What becomes of a pod while a plugin that it needs is down."""

    REJECT = "reject"
    RETRY = "retry"
    """Wait for a moment; then it is rejected for now."""
    KEEP_LAST = "keep-last"
    """With what it had, if it had something."""
    FAIL_OPEN = "fail-open"
    """Without what the plugin would have set."""


class AdmissionConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    policy: TopologyPolicy = TopologyPolicy.NONE
    options: TopologyOptions = TopologyOptions()
    scope: Scope = Scope.CONTAINER
    nodes: CpuSet = CpuSet({0})
    """The NUMA nodes of this machine."""
    distances: Distances = msgspec.field(default_factory=lambda: {0: {0: 10}})
    names: Mapping[str, str] = {}
    """Resources that are served by the plugin of another name."""
    outages: Mapping[str, Outage] = {}
    """By role."""
    outage: Outage = Outage.REJECT
    """For all other roles."""
    outage_wait: float = 5.0
    """Seconds."""
    settle_seconds: float = 2.0
    """How long an admission waits for a resize that is on its way to the runtime."""
    skip_owners: frozenset[str] = frozenset()
    """Kinds of owners whose pods start without plugins being asked, as DaemonSet."""

    def outage_of(self, role: str) -> Outage:
        return self.outages.get(role, self.outage)
