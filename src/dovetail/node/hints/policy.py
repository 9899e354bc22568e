"""The topology manager's policies and options, named as the kubelet's are."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet

USUAL_LIMIT = 8
"""NUMA nodes. Plugins may answer with a hint for every set of nodes: 255 hints for 8 nodes."""


class BadPolicy(DovetailError):
    """A policy that cannot be followed on this machine."""


class TopologyPolicy(StrEnum):
    NONE = "none"
    """Nobody is asked."""
    BEST_EFFORT = "best-effort"
    """The best there is."""
    RESTRICTED = "restricted"
    """All resources on the same nodes, and on as few as each needs."""
    SINGLE_NUMA_NODE = "single-numa-node"
    """All resources on one node."""
    NUMERIC = "numeric"
    """Some resources on the same nodes; the others on some of these, or around them."""


class TopologyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Named as the kubelet does."""

    prefer_closest_numa_nodes: bool = False
    """Of sets of equal size, the one with the shortest distances."""
    max_allowable_numa_nodes: int = USUAL_LIMIT
    align: tuple[str, ...] = ("cpu", "memory")
    """The resources that the numeric policy wants on the same nodes."""


def check(policy: TopologyPolicy, options: TopologyOptions, nodes: CpuSet) -> None:
    """Raises BadPolicy. To be asked once, at the start."""
    limit = options.max_allowable_numa_nodes
    if limit < USUAL_LIMIT:
        raise BadPolicy(
            f"max-allowable-numa-nodes is {limit}; it can only be raised, above {USUAL_LIMIT}"
        )
    if policy is not TopologyPolicy.NONE and len(nodes) > limit:
        raise BadPolicy(
            f"this machine has {len(nodes)} NUMA nodes and the policy {policy} is allowed for "
            f"{limit}: each admission may take 2**{len(nodes)} hints of each resource. Set "
            f"max-allowable-numa-nodes to {len(nodes)} if that is fine, or use the policy none"
        )
