"""VolumeRestrictions, inline disks: no two pods of a node use one, unless all of them only read it.

A disk that a volume names by itself is attached to the node as the pod writes it, not by a claim
that somebody accounts for.
"""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.terms import InlineDisk

TOKEN = Reason.DISK
FIELD = "volumes"
REASON = "node(s) had no available disk"


def is_conflict(one: InlineDisk, other: InlineDisk) -> bool:
    if (one.kind, one.names) != (other.kind, other.names) or (one.is_shared and other.is_shared):
        return False
    is_seen_alike = not one.monitors and not other.monitors
    return is_seen_alike or not set(one.monitors).isdisjoint(other.monitors)


def nodes_using(nodes: Nodes, disk: InlineDisk) -> Mask | None:
    """By row; None: on no node."""
    chosen = nodes.disks.decided(disk, lambda other: is_conflict(disk, other))
    return nodes.disks.counts(chosen, nodes.size) > 0 if chosen.any() else None


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    mask: Mask | None = None
    for disk in request.disks:
        used = nodes_using(nodes, disk)
        if used is not None:
            mask = ~used if mask is None else mask & ~used
    return mask


def passing_if_idle(_nodes: Nodes, _request: PodRequest) -> Mask | None:
    return None


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    for disk in request.disks:
        used = nodes_using(nodes, disk)
        if used is not None and used[row]:
            return f"{disk.kind} {'/'.join(disk.names)} is in use on the node"
    return ""
