"""TaintToleration: taints that keep pods away, and the tolerations that let them in.

A pod's tolerations are compared with each distinct set of taints, not with each node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes, Taints
from dovetail.podfit.objects import Taint, Toleration
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.selectors import integer

TOKEN = Reason.TAINT
FIELD = "tolerations"
HARD_EFFECTS = ("NoSchedule", "NoExecute")
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Lt and Gt are alpha in Kubernetes 1.35 and 1.36: an API server that does not have them on
    refuses such a pod, so here they can be taken at their word."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt":
            ours, theirs = number(toleration.value), number(taint.value)
            if ours is None or theirs is None:
                return False
            return theirs < ours if toleration.operator == "Lt" else theirs > ours
        case _:
            return False


def number(text: str) -> int | None:
    """Written as people do: no plus, no leading zeros."""
    return integer(text) if PLAIN_NUMBER.fullmatch(text) else None


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(taints: Taints, tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first that keeps the pod away."""
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not is_tolerated(taint, tolerations):
            return taint
    return None


def blocked_taint_sets(nodes: Nodes, request: PodRequest) -> Mask:
    """By number of the taint set."""
    return nodes.taint_sets.decided(
        request.tolerations,
        lambda taints: first_untolerated(taints, request.tolerations) is not None,
    )


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    table = blocked_taint_sets(nodes, request)
    if not table.any():
        return None
    found: Mask = ~table.take(nodes.taints)
    return found


passing_if_idle = passing


def reasons(nodes: Nodes, request: PodRequest, failed: Mask) -> Counter[str]:
    found: Counter[str] = Counter()
    for one, count in zip(
        *np.unique(nodes.taints.compress(failed), return_counts=True), strict=True
    ):
        taint = first_untolerated(nodes.taint_sets.keys[int(one)] or (), request.tolerations)
        if taint is not None:
            found[f"node(s) had untolerated taint {taint_text(taint)}"] += int(count)
    return found


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    taints = nodes.taint_sets.keys[int(nodes.taints[row])] or ()
    taint = first_untolerated(taints, request.tolerations)
    return f"the pod does not tolerate taint {taint_text(taint)} ({taint.effect})" if taint else ""


def taint_text(taint: Taint) -> str:
    return f"{{{taint.key}: {taint.value}}}"
