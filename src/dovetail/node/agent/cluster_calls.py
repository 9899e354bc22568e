"""Calls to the cluster, handed to the daemon by the command line: it has no Kubernetes client."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.node.agent.allocation_teller import TellPod
from dovetail.node.agent.device_publisher import Publish
from dovetail.node.class_devices.guard_trust import AskGuard
from dovetail.node.refusals.refused_pods import FailPod


class ClusterCalls(NamedTuple):
    """Those that the settings ask for, and for which there is a way to the API server."""

    publish: Publish | None = None
    fail_pod: FailPod | None = None
    ask_guard: AskGuard | None = None
    tell_pod: TellPod | None = None


NO_CALLS = ClusterCalls()
