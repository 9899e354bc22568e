"""PodTopologySpread: constraints that must hold (DoNotSchedule) keep domains within `skew`.

A domain would have at most `skew` pods more than the emptiest with this pod in it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.core.columns import Amounts, Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import Domains
from dovetail.podfit.filters import node_affinity, taints
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.selectors import matches
from dovetail.podfit.terms import TopologySpread

TOKEN = Reason.TOPOLOGY_SPREAD
FIELD = "topologySpreadConstraints"
REASON = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{REASON} (missing required label)"


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    if not request.spread:
        return None
    mask = with_labels(nodes, request.spread)
    eligible = nodes.present & mask
    for spread in request.spread:
        mask &= skews(nodes, request, spread, eligible) <= spread.skew
    return mask


def with_labels(nodes: Nodes, spreads: tuple[TopologySpread, ...]) -> Mask:
    """Rows that are in a domain of every constraint. Pods on other nodes count for none."""
    mask: Mask = np.ones(nodes.size, np.bool_)
    for spread in spreads:
        mask &= Domains(nodes, spread.topology_key).rows_in_one
    return mask


def skews(nodes: Nodes, request: PodRequest, spread: TopologySpread, eligible: Mask) -> Amounts:
    """By row, how far its domain would be above the emptiest, were the pod there."""
    domains = Domains(nodes, spread.topology_key)
    counted = rows_counted(nodes, request, spread, eligible)
    pods = domains.sums(pod_counts(nodes, request, spread) * counted)
    there = domains.containing(np.flatnonzero(counted))
    least = 0
    if int(there.sum()) >= spread.min_domains:
        least = int(pods[there].min())
    own = 1 if matches(spread.selector, request.labels) else 0
    found: Amounts = pods.take(domains.of) + (own - least)
    return found


def rows_counted(nodes: Nodes, request: PodRequest, spread: TopologySpread, eligible: Mask) -> Mask:
    """Rows whose pods count: those the pod may go to, as far as the constraint's policies say."""
    mask = eligible
    if spread.honor_affinity:
        allowed = node_affinity.passing(nodes, request)
        mask = mask if allowed is None else mask & allowed
    if spread.honor_taints:
        allowed = taints.passing(nodes, request)
        mask = mask if allowed is None else mask & allowed
    return mask


def pod_counts(nodes: Nodes, request: PodRequest, spread: TopologySpread) -> Amounts:
    """By row, the pods of the namespace that the constraint is about, without those leaving."""
    if not spread.selector:
        # An empty selector means every pod, but kube-scheduler counts none for it.
        return np.zeros(nodes.size, np.int64)
    chosen = nodes.pods.decided(
        (request.namespace, spread.selector),
        lambda kind: (
            kind.namespace == request.namespace
            and not kind.leaving
            and matches(spread.selector, dict(kind.labels))
        ),
    )
    return nodes.pods.counts(chosen, nodes.size)


def passing_if_idle(nodes: Nodes, request: PodRequest) -> Mask | None:
    return with_labels(nodes, request.spread)


def reasons(nodes: Nodes, request: PodRequest, failed: Mask) -> Counter[str]:
    without = int((failed & ~with_labels(nodes, request.spread)).sum())
    return Counter({NO_LABEL: without, REASON: int(failed.sum()) - without})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    labels = nodes.labels.of(row)
    for spread in request.spread:
        if spread.topology_key not in labels:
            return f"spreading wants label {spread.topology_key}, which the node has not"
    eligible = nodes.present & with_labels(nodes, request.spread)
    for spread in request.spread:
        skew = int(skews(nodes, request, spread, eligible)[row])
        if skew > spread.skew:
            place = f"{spread.topology_key}={labels[spread.topology_key]}"
            return f"spreading: {place} would be {skew} above the emptiest, {spread.skew} may be"
    return ""
