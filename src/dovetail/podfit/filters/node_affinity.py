"""NodeAffinity: labels and name of the node, as nodeSelector and required affinity want them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.objects import NodeSelectorTerm, SelectorRequirement
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.selectors import Labels, is_met

TOKEN = Reason.NODE_AFFINITY
FIELD = "nodeSelector, affinity.nodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
NAME_FIELD = "metadata.name"


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    if not request.node_labels and request.node_terms is None:
        return None
    mask: Mask = np.ones(nodes.size, np.bool_)
    for term in request.node_labels:
        mask &= nodes.labels.meeting(term)
    if request.node_terms is not None:
        mask &= meeting_any(nodes, request.node_terms)
    return mask


def meeting_any(nodes: Nodes, terms: tuple[NodeSelectorTerm, ...]) -> Mask:
    mask: Mask = np.zeros(nodes.size, np.bool_)
    for term in terms:
        mask |= meeting(nodes, term)
    return mask


def meeting(nodes: Nodes, term: NodeSelectorTerm) -> Mask:
    """By row: all requirements of the term are met."""
    mask: Mask = np.ones(nodes.size, np.bool_)
    for one in term.match_expressions:
        mask &= nodes.labels.meeting(one)
    for one in term.match_fields:
        mask &= matching_name(nodes, one)
    return mask


def matching_name(nodes: Nodes, field: SelectorRequirement) -> Mask:
    """A requirement on the node's name, the one field there is; others are empty on every node."""
    is_in = field.operator == "In"
    if field.key != NAME_FIELD:
        return np.full(nodes.size, (field.values[0] == "") is is_in)
    mask: Mask = np.full(nodes.size, not is_in)
    row = nodes.rows.find(field.values[0])
    if row is not None:
        mask[row] = is_in
    return mask


passing_if_idle = passing


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    labels = nodes.labels.of(row)
    for term in request.node_labels:
        if not is_met(term, labels.get(term.key)):
            return (
                f"nodeSelector wants label {term.key}={term.values[0]}, which {has(labels, term)}"
            )
    if request.node_terms is not None and len(request.node_terms) == 1:
        for one in request.node_terms[0].match_expressions:
            if not is_met(one, labels.get(one.key)):
                wanted = " ".join((one.operator, *filter(None, (", ".join(one.values),))))
                return f"node affinity wants label {one.key} {wanted}, which {has(labels, one)}"
    return "the node meets none of the terms of the pod's required node affinity"


def has(labels: Labels, term: SelectorRequirement) -> str:
    return f"is {labels[term.key]!r}" if term.key in labels else "is not set"
