"""NodeDeclaredFeatures: the node declares every feature that the pod needs of its kubelet.

Kubelets refuse pods that need others. Decided once for each distinct set of features.
"""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest

TOKEN = Reason.NODE_FEATURE
FIELD = "containers.restartPolicyRules, hostUsers"
REASON = "node(s) didn't match Pod's required features"


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    if not request.features:
        return None
    declaring = nodes.feature_sets.decided(
        request.features, lambda declared: set(request.features) <= set(declared)
    )
    found: Mask = declaring.take(nodes.features)
    return found


passing_if_idle = passing


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    declared = nodes.feature_sets.keys[int(nodes.features[row])] or ()
    lacking = [each for each in request.features if each not in declared]
    return f"the node does not declare feature {', '.join(lacking)}, which the pod needs"
