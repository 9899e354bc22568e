"""NodeUnschedulable: cordoned nodes take only pods that tolerate that."""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.filters.taints import is_tolerated
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.objects import Taint
from dovetail.podfit.pod_request import PodRequest

TOKEN = Reason.UNSCHEDULABLE
FIELD = "tolerations"
REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    if not nodes.unschedulable.any() or is_tolerated(CORDON, request.tolerations):
        return None
    return ~nodes.unschedulable


passing_if_idle = passing


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(_nodes: Nodes, _request: PodRequest, _row: int) -> str:
    return f"the node is unschedulable (cordoned), and the pod does not tolerate {CORDON.key}"
