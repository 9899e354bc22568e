"""Ports of the host: no two pods of a node may have the same."""

from __future__ import annotations

from collections import Counter

from dovetail.podfit.columns import Mask
from dovetail.podfit.demand import ANY_ADDRESS, Demand
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.terms import Port

REASON = "node(s) didn't have free ports for the requested pod ports"


def conflict(one: Port, other: Port) -> bool:
    if (one.protocol, one.number) != (other.protocol, other.number):
        return False
    return one.address == other.address or ANY_ADDRESS in (one.address, other.address)


def taken(nodes: Nodes, port: Port) -> Mask | None:
    """By row; None: on no node."""
    chosen = nodes.ports.decided(port, lambda other: conflict(port, other))
    return nodes.ports.counts(chosen, nodes.size) > 0 if chosen.any() else None


def passing(nodes: Nodes, demand: Demand) -> Mask | None:
    mask: Mask | None = None
    for port in demand.ports:
        used = taken(nodes, port)
        if used is not None:
            mask = ~used if mask is None else mask & ~used
    return mask


def reasons(_nodes: Nodes, _demand: Demand, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, demand: Demand, row: int) -> str:
    for port in demand.ports:
        used = taken(nodes, port)
        if used is not None and used[row]:
            return f"host port {port.number}/{port.protocol} is in use on the node"
    return ""
