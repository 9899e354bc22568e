"""InterPodAffinity, required affinity: pods that all terms select have to be in the same domains.

The first pod of a group that wants to be near itself could never go anywhere. So where no pod is
selected yet and the pod's terms select the pod itself, a node that has the labels is enough.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import Domains, selected_by_all, selects
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest

TOKEN = Reason.POD_AFFINITY
FIELD = "affinity.podAffinity"
REASON = "node(s) didn't match pod affinity rules"


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    if not request.pod_affinity:
        return None
    rows = nodes.pods.rows(selected_by_all(nodes, request.pod_affinity))
    found = False
    near: Mask = np.ones(nodes.size, np.bool_)
    labelled: Mask = np.ones(nodes.size, np.bool_)
    for term in request.pod_affinity:
        domains = Domains(nodes, term.topology_key)
        touched = domains.containing(rows)
        found = found or bool(touched.any())
        near &= touched.take(domains.of)
        labelled &= domains.rows_in_one
    return labelled if not found and is_first_of_group(nodes, request) else near


def is_first_of_group(nodes: Nodes, request: PodRequest) -> bool:
    return all(selects(nodes, term, request.selectable) for term in request.pod_affinity)


def passing_if_idle(nodes: Nodes, request: PodRequest) -> Mask | None:
    """The pods that have to be near may still come: the labels are all that a node needs."""
    mask: Mask = np.ones(nodes.size, np.bool_)
    for term in request.pod_affinity:
        mask &= Domains(nodes, term.topology_key).rows_in_one
    return mask


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    labels = nodes.labels.of(row)
    for term in request.pod_affinity:
        if term.topology_key not in labels:
            return f"pod affinity wants label {term.topology_key}, which the node has not"
    places = " and ".join(
        f"{term.topology_key}={labels[term.topology_key]}" for term in request.pod_affinity
    )
    return f"pod affinity: no pod that it means is in {places}"
