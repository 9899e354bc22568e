"""Filters: what rules a node out for a pod, a module per rule, in kube-scheduler's order.

`filtered_nodes.py` runs all of them. Each is named after the kube-scheduler Filter plugin whose
rules it follows, and works on all nodes at once: `passing` says by row which nodes may have the pod
(None: all of them), `passing_if_idle` which might if nothing were in use, `reasons` counts why
others may not, `why` says it of one node. `TOKEN` names the rule for programs, `FIELD` what of the
pod's specification it goes by.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.filters import (
    disks,
    existing_anti_affinity,
    features,
    node_affinity,
    pod_affinity,
    pod_anti_affinity,
    ports,
    resources,
    spread,
    taints,
    unschedulable,
)
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest


class NodeFilter(Protocol):
    TOKEN: Reason
    FIELD: str

    def passing(self, nodes: Nodes, request: PodRequest, /) -> Mask | None: ...

    def passing_if_idle(self, nodes: Nodes, request: PodRequest, /) -> Mask | None: ...

    def reasons(self, nodes: Nodes, request: PodRequest, failed: Mask, /) -> Counter[str]: ...

    def why(self, nodes: Nodes, request: PodRequest, row: int, /) -> str: ...


FILTERS: tuple[NodeFilter, ...] = (
    unschedulable,
    taints,
    node_affinity,
    ports,
    resources,
    disks,
    spread,
    pod_affinity,
    pod_anti_affinity,
    existing_anti_affinity,
    features,
)
