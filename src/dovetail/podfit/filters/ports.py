"""NodePorts: no two pods of a node may have the same port of the host."""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import ANY_ADDRESS, PodRequest
from dovetail.podfit.terms import HostPort

TOKEN = Reason.HOST_PORT
FIELD = "containers.ports.hostPort"
REASON = "node(s) didn't have free ports for the requested pod ports"


def is_conflict(one: HostPort, other: HostPort) -> bool:
    if (one.protocol, one.number) != (other.protocol, other.number):
        return False
    return one.address == other.address or ANY_ADDRESS in (one.address, other.address)


def nodes_using(nodes: Nodes, port: HostPort) -> Mask | None:
    """By row; None: on no node."""
    chosen = nodes.ports.decided(port, lambda other: is_conflict(port, other))
    return nodes.ports.counts(chosen, nodes.size) > 0 if chosen.any() else None


def passing(nodes: Nodes, request: PodRequest) -> Mask | None:
    mask: Mask | None = None
    for port in request.ports:
        used = nodes_using(nodes, port)
        if used is not None:
            mask = ~used if mask is None else mask & ~used
    return mask


def passing_if_idle(_nodes: Nodes, _request: PodRequest) -> Mask | None:
    return None


def reasons(_nodes: Nodes, _request: PodRequest, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, request: PodRequest, row: int) -> str:
    for port in request.ports:
        used = nodes_using(nodes, port)
        if used is not None and used[row]:
            return f"host port {port.number}/{port.protocol} is in use on the node"
    return ""
