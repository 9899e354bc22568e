"""Which nodes fit a pod and, when asked, why the others do not."""

from __future__ import annotations

from collections import Counter

from dovetail.core.columns import Mask
from dovetail.podfit.filters import FILTERS, NodeFilter
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest

NO_NODES = "no nodes available to schedule pods"


class FilteredNodes:
    """Reasons are worked out from the nodes as they are: ask before they change."""

    __slots__ = ("_nodes", "_request", "_steps", "mask")

    def __init__(self, nodes: Nodes, request: PodRequest) -> None:
        self._nodes = nodes
        self._request = request
        self._steps: list[tuple[NodeFilter, Mask]] = []
        mask = nodes.present.copy()
        for step in FILTERS:
            passing = step.passing(nodes, request)
            if passing is not None:
                mask &= passing
                self._steps.append((step, passing))
        self.mask = mask
        """By row, whether the node fits."""

    def reasons(self) -> Counter[str]:
        """How many nodes were ruled out by what; each node by the first filter it fails."""
        found: Counter[str] = Counter()
        left = self._nodes.present
        for step, passing in self._steps:
            failed = left & ~passing
            if failed.any():
                found += step.reasons(self._nodes, self._request, failed)
            left = left & passing
        return found

    def why(self, row: int) -> str:
        """The first thing the node misses, and by how much; empty if it fits."""
        if not self._nodes.present[row]:
            return "there is no such node"
        for step, passing in self._steps:
            if not passing[row]:
                return step.why(self._nodes, self._request, row)
        return ""

    def __str__(self) -> str:
        """In the way of kube-scheduler: 0/5 nodes are available: 3 Insufficient cpu, ..."""
        return summary(int(self.mask.sum()), int(self._nodes.present.sum()), self.reasons())


def summary(fitting: int, nodes: int, reasons: Counter[str]) -> str:
    if not nodes:
        return f"0/0 nodes are available: {NO_NODES}."
    counted = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    listed = ", ".join(f"{count} {reason}" for reason, count in counted)
    return f"{fitting}/{nodes} nodes are available{f': {listed}' if listed else ''}."
