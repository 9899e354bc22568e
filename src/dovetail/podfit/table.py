"""Node table: a cluster's nodes and what is on them, asked for where a pod fits and what is best.

Scheduler and extender keep one up to date as nodes and pods come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.core.explanation import Reason
from dovetail.core.rows import Rows
from dovetail.podfit import scores
from dovetail.podfit.filtered_nodes import FilteredNodes
from dovetail.podfit.filters.existing_anti_affinity import excluded_rows
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.objects import Namespace, Node, Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.pod_sum import ENDED_PHASES, allocatable_of
from dovetail.podfit.scores.resources import ScoringStrategy
from dovetail.podfit.terms import SelectablePod


class CountedPod(msgspec.Struct):
    """A pod that is, or is about to be, on a node, and its entries in the multisets of `Nodes`."""

    node: str
    request: PodRequest
    leaving: bool
    pod: int = -1
    ports: tuple[int, ...] = ()
    disks: tuple[int, ...] = ()
    pod_anti_affinity: tuple[int, ...] = ()
    preferences: tuple[int, ...] = ()


class NodeTable:
    """Which nodes fit a pod, and which is best. Events come in any order, and more than once.

    Rows are shared: the same row is the same node in every other table of these `rows`.
    """

    def __init__(
        self, rows: Rows, strategy: ScoringStrategy = ScoringStrategy.LEAST_ALLOCATED
    ) -> None:
        self._nodes = Nodes(rows)
        self._strategy = strategy
        self._rows: dict[str, int] = {}
        self._known_nodes: dict[str, Node] = {}
        self._pods: dict[str, CountedPod] = {}
        self._pods_by_node: dict[str, dict[str, CountedPod]] = {}
        """By node: also of nodes that are not there (yet), since events have no common order."""
        self._set_aside: dict[str, tuple[tuple[str, int], ...]] = {}
        """By node, likewise."""

    @property
    def nodes(self) -> Nodes:
        """What filters and packing look at; only the table changes it."""
        self._nodes.reach()
        return self._nodes

    def set_node(self, node: Node) -> bool:
        """Take in a node that is new or may have changed; False if nothing did that matters here.

        Raises BadQuantity, changing nothing.
        """
        name = node.metadata.name
        before = self._known_nodes.get(name)
        if before is not None and is_same_node(before, node):
            return False
        has = allocatable_of(node.status.allocatable)
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = self._nodes.rows.row(name)
            self._nodes.reach()
            self._nodes.present[row] = True
            for counted in self._pods_by_node.get(name, {}).values():
                self._put(counted, row)
            self._nodes.resources.add(row, self._set_aside.get(name, ()))
        self._known_nodes[name] = node
        self._nodes.labels.put(row, node.metadata.labels)
        self._nodes.set_taints(row, node.spec.taints)
        self._nodes.set_features(row, node.status.declared_features)
        self._nodes.unschedulable[row] = node.spec.unschedulable
        self._nodes.set_allocatable(row, has)
        return True

    def drop_node(self, name: str) -> None:
        """The node is no more; its row may be given to another after this.

        Pods on it are remembered, in case it comes back before they go.
        """
        row = self._rows.pop(name, None)
        if row is None:
            return
        del self._known_nodes[name]
        for counted in self._pods_by_node.get(name, {}).values():
            self._lift(counted, row)
        self._nodes.resources.add(row, self._set_aside.get(name, ()), -1)
        self._nodes.present[row] = False
        self._nodes.unschedulable[row] = False
        self._nodes.labels.put(row, {})
        self._nodes.set_taints(row, ())
        self._nodes.set_features(row, ())
        self._nodes.set_allocatable(row, {})

    def set_namespace(self, namespace: Namespace) -> bool:
        """Selectors of namespaces look at their labels; one that is not known has none.

        False if nothing changed.
        """
        return self._nodes.set_namespace(namespace.metadata.name, namespace.metadata.labels)

    def drop_namespace(self, name: str) -> bool:
        return self._nodes.set_namespace(name, None)

    def add_pod(self, pod: Pod, node: str = "") -> None:
        """Count a pod where it is, or is to be (`node`). Again: as it is now, counted once."""
        uid, node_name = pod.metadata.uid, node or pod.spec.node_name
        if not node_name or pod.status.phase in ENDED_PHASES:
            self.remove_pod(uid)
            return
        new = CountedPod(
            node_name, pod_request_of(pod), pod.metadata.deletion_timestamp is not None
        )
        old = self._pods.get(uid)
        if old is not None:
            if is_same_pod(old, new):
                return
            self.remove_pod(uid)
        self._pods[uid] = new
        self._pods_by_node.setdefault(node_name, {})[uid] = new
        row = self._rows.get(node_name)
        if row is not None:
            self._put(new, row)

    def remove_pod(self, uid: str) -> None:
        """Nothing happens if it is not there."""
        counted = self._pods.pop(uid, None)
        if counted is None:
            return
        there = self._pods_by_node[counted.node]
        del there[uid]
        if not there:
            del self._pods_by_node[counted.node]
        row = self._rows.get(counted.node)
        if row is not None:
            self._lift(counted, row)

    def set_aside(self, node: str, amounts: Mapping[str, int]) -> None:
        """So much of the node is held by others than pods that ask for it: no room for pods."""
        before = self._set_aside.pop(node, ())
        now = tuple((name, amount) for name, amount in amounts.items() if amount)
        if now:
            self._set_aside[node] = now
        row = self._rows.get(node)
        if row is not None and before != now:
            self._nodes.resources.add(row, before, -1)
            self._nodes.resources.add(row, now)

    def free(self, node: str, resource: str) -> int:
        """What is left of it; below nothing, if too much was given."""
        row = self._rows.get(node)
        return 0 if row is None else self._nodes.resources.amounts(row, resource)[1]

    def allocatable(self, node: str, resource: str) -> int:
        """What the node has of it to give."""
        row = self._rows.get(node)
        return 0 if row is None else self._nodes.resources.amounts(row, resource)[0]

    def eligible(self, request: PodRequest) -> list[str]:
        """Nodes that would take the pod if they had room: all filters but that of amounts."""
        mask = self.filter(request, without=Reason.AMOUNT).mask
        return [self._nodes.rows.names[row] for row in np.flatnonzero(mask)]

    def is_kept_away(self, request: PodRequest) -> bool:
        """Whether pods on nodes keep this one from any of them, by their anti-affinity."""
        return any(excluded_rows(self.nodes, request))

    def why_not_on(self, node: str, request: PodRequest) -> str:
        """As `why`, of a node by its name."""
        row = self._rows.get(node)
        return "there is no such node" if row is None else self.why(row, request)

    def node_of(self, uid: str) -> str | None:
        """Where a pod is counted."""
        counted = self._pods.get(uid)
        return counted.node if counted else None

    def filter(
        self,
        request: PodRequest,
        *,
        among: Iterable[str] | None = None,
        without: Reason | None = None,
    ) -> FilteredNodes:
        """`among`: nodes by name; None stands for all. `without`: a filter that is left out."""
        rows: Mask | None = None
        if among is not None:
            rows = np.zeros(self.nodes.size, np.bool_)
            rows[[self._rows[name] for name in among if name in self._rows]] = True
        return FilteredNodes(self.nodes, request, without, rows)

    def score(self, request: PodRequest, mask: Mask) -> Floats:
        """By row, more is better; minus infinity where `mask` is not. The first of equals wins."""
        return scores.total(self.nodes, request, mask, self._strategy)

    def why(self, row: int, request: PodRequest) -> str:
        """The first thing the node misses, and by how much; empty if the pod fits."""
        return self.filter(request).why(row)

    def _put(self, counted: CountedPod, row: int) -> None:
        nodes, request = self._nodes, counted.request
        nodes.resources.add(row, request.amounts)
        nodes.score_resources.add(row, request.score_amounts)
        kind = request.selectable
        if counted.leaving:
            kind = SelectablePod(kind.namespace, kind.labels, leaving=True)
        counted.pod = nodes.pods.add(kind, row)
        counted.ports = tuple(nodes.ports.add(port, row) for port in request.ports)
        counted.disks = tuple(nodes.disks.add(disk, row) for disk in request.disks)
        counted.pod_anti_affinity = tuple(
            nodes.pod_anti_affinity.add(term, row) for term in request.pod_anti_affinity
        )
        near = tuple((term, 1) for term in request.pod_affinity)
        counted.preferences = tuple(
            nodes.preferences.add(like, row) for like in request.preferred_pods + near
        )

    def _lift(self, counted: CountedPod, row: int) -> None:
        nodes, request = self._nodes, counted.request
        nodes.resources.add(row, request.amounts, -1)
        nodes.score_resources.add(row, request.score_amounts, -1)
        nodes.pods.remove(counted.pod)
        for tally, places in (
            (nodes.ports, counted.ports),
            (nodes.disks, counted.disks),
            (nodes.pod_anti_affinity, counted.pod_anti_affinity),
            (nodes.preferences, counted.preferences),
        ):
            for one in places:
                tally.remove(one)


def is_same_node(before: Node, now: Node) -> bool:
    """Whether nothing changed that pods could notice: kubelets write to their nodes every few
    minutes just to say that they are alive."""
    return (
        before.metadata.labels == now.metadata.labels
        and before.spec == now.spec
        and before.status.allocatable == now.status.allocatable
        and before.status.declared_features == now.status.declared_features
    )


def is_same_pod(one: CountedPod, other: CountedPod) -> bool:
    return (
        one.node == other.node
        and one.leaving == other.leaving
        and (one.request is other.request or one.request == other.request)
    )
