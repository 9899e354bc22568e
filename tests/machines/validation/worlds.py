"""The world of the specification's example: its three nodes, and whom else a test adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.machines.documents import Machine
from dovetail.machines.validation import findings
from dovetail.machines.validation.world import World
from dovetail.podfit.objects import Node
from tests.machines.building import changed, machine, node

DGX = {"nvidia.com/gpu.machine": "DGX-1", "nvidia.com/gpu.family": "volta"}
NODES = {
    "michiru": node("michiru", labels={"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-3090"}),
    "utaha": node("utaha", labels=DGX),
    "eriri": node("eriri", labels=DGX),
}


def world(
    *machines: Machine,
    accepted: Machine | None = None,
    sold: Mapping[str, Sequence[str]] | None = None,
    without: Sequence[str] = (),
    nodes: Mapping[str, Node] = NODES,
) -> World:
    nodes = {name: each for name, each in nodes.items() if name not in without}
    return World(machines=machines, nodes=nodes, accepted=accepted, sold=sold or {})


def faults(changes: dict[str, Any], around: World | None = None) -> list[tuple[str, str]]:
    """Of the example, changed at some places of its specification: path and message."""
    found = findings(machine(changed(changes)), around or world())
    return [(each.path, each.message) for each in found]
