"""The table of nodes: kept up to date as nodes and pods come and go, asked for where a pod fits."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.core.rows import Rows
from dovetail.podfit import scores
from dovetail.podfit.columns import Floats, Mask
from dovetail.podfit.demand import Demand, demand_of
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.objects import Namespace, Node, Pod
from dovetail.podfit.pods import allocatable
from dovetail.podfit.scores.resources import Prefer
from dovetail.podfit.terms import PodKind
from dovetail.podfit.verdict import Verdict

OVER = ("Succeeded", "Failed")
"""Phases in which a pod holds nothing any more."""


class Place(msgspec.Struct):
    """A pod that is, or is about to be, on a node; and where the tallies have what it brought."""

    node: str
    demand: Demand
    leaving: bool
    pod: int = -1
    ports: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    likes: tuple[int, ...] = ()


class NodeTable:
    """Rows are shared: the same row is the same node in every other table of these `rows`."""

    def __init__(self, rows: Rows, prefer: Prefer = Prefer.LEAST_ALLOCATED) -> None:
        self._nodes = Nodes(rows)
        self._prefer = prefer
        self._rows: dict[str, int] = {}
        self._seen: dict[str, Node] = {}
        self._places: dict[str, Place] = {}
        self._on: dict[str, dict[str, Place]] = {}
        """By node: also of nodes that are not there (yet), since events have no common order."""
        self._aside: dict[str, tuple[tuple[str, int], ...]] = {}
        """By node, likewise."""

    def set_node(self, node: Node) -> None:
        """Take in a node that is new or may have changed. Raises BadQuantity, changing nothing."""
        name = node.metadata.name
        before = self._seen.get(name)
        if before is not None and alike(before, node):
            return
        has = allocatable(node.status.allocatable)
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = self._nodes.rows.row(name)
            self._nodes.reach()
            self._nodes.present[row] = True
            for place in self._on.get(name, {}).values():
                self._put(place, row)
            self._nodes.room.add(row, self._aside.get(name, ()))
        self._seen[name] = node
        self._nodes.labels.put(row, node.metadata.labels)
        self._nodes.set_taints(row, node.spec.taints)
        self._nodes.unschedulable[row] = node.spec.unschedulable
        self._nodes.set_allocatable(row, has)

    def drop_node(self, name: str) -> None:
        """The node is no more; its row may be given to another after this.

        Pods on it are remembered, in case it comes back before they go.
        """
        row = self._rows.pop(name, None)
        if row is None:
            return
        del self._seen[name]
        for place in self._on.get(name, {}).values():
            self._lift(place, row)
        self._nodes.room.add(row, self._aside.get(name, ()), -1)
        self._nodes.present[row] = False
        self._nodes.unschedulable[row] = False
        self._nodes.labels.put(row, {})
        self._nodes.set_taints(row, ())
        self._nodes.set_allocatable(row, {})

    def set_namespace(self, namespace: Namespace) -> None:
        """Selectors of namespaces look at their labels; one that is not known has none."""
        self._nodes.set_namespace(namespace.metadata.name, namespace.metadata.labels)

    def drop_namespace(self, name: str) -> None:
        self._nodes.set_namespace(name, None)

    def add_pod(self, pod: Pod, node: str = "") -> None:
        """Count a pod where it is, or is to be (`node`). Again: as it is now, counted once."""
        uid, place = pod.metadata.uid, node or pod.spec.node_name
        if not place or pod.status.phase in OVER:
            self.remove_pod(uid)
            return
        new = Place(place, demand_of(pod), pod.metadata.deletion_timestamp is not None)
        old = self._places.get(uid)
        if old is not None:
            if same(old, new):
                return
            self.remove_pod(uid)
        self._places[uid] = new
        self._on.setdefault(place, {})[uid] = new
        row = self._rows.get(place)
        if row is not None:
            self._put(new, row)

    def remove_pod(self, uid: str) -> None:
        """Nothing happens if it is not there."""
        place = self._places.pop(uid, None)
        if place is None:
            return
        there = self._on[place.node]
        del there[uid]
        if not there:
            del self._on[place.node]
        row = self._rows.get(place.node)
        if row is not None:
            self._lift(place, row)

    def set_aside(self, node: str, amounts: Mapping[str, int]) -> None:
        """So much of the node is held by others than pods that ask for it: no room for pods."""
        before = self._aside.pop(node, ())
        now = tuple((name, amount) for name, amount in amounts.items() if amount)
        if now:
            self._aside[node] = now
        row = self._rows.get(node)
        if row is not None and before != now:
            self._nodes.room.add(row, before, -1)
            self._nodes.room.add(row, now)

    def free(self, node: str, resource: str) -> int:
        """What is left of it; below nothing, if too much was given."""
        row = self._rows.get(node)
        return 0 if row is None else self._nodes.room.amounts(row, resource)[1]

    def node_of(self, uid: str) -> str | None:
        """Where a pod is counted."""
        place = self._places.get(uid)
        return place.node if place else None

    def filter(self, demand: Demand) -> Verdict:
        self._nodes.reach()
        return Verdict(self._nodes, demand)

    def score(self, demand: Demand, mask: Mask) -> Floats:
        """By row, more is better; minus infinity where `mask` is not. The first of equals wins."""
        self._nodes.reach()
        return scores.total(self._nodes, demand, mask, self._prefer)

    def why(self, row: int, demand: Demand) -> str:
        """The first thing the node misses, and by how much; empty if the pod fits."""
        return self.filter(demand).why(row)

    def _put(self, place: Place, row: int) -> None:
        nodes, demand = self._nodes, place.demand
        nodes.room.add(row, demand.amounts)
        nodes.weight.add(row, demand.weight)
        kind = demand.kind
        if place.leaving:
            kind = PodKind(kind.namespace, kind.labels, leaving=True)
        place.pod = nodes.pods.add(kind, row)
        place.ports = tuple(nodes.ports.add(port, row) for port in demand.ports)
        place.apart = tuple(nodes.apart.add(term, row) for term in demand.apart)
        near = tuple((term, 1) for term in demand.near)
        place.likes = tuple(nodes.likes.add(like, row) for like in demand.likes + near)

    def _lift(self, place: Place, row: int) -> None:
        nodes, demand = self._nodes, place.demand
        nodes.room.add(row, demand.amounts, -1)
        nodes.weight.add(row, demand.weight, -1)
        nodes.pods.remove(place.pod)
        for tally, places in (
            (nodes.ports, place.ports),
            (nodes.apart, place.apart),
            (nodes.likes, place.likes),
        ):
            for one in places:
                tally.remove(one)


def alike(one: Node, other: Node) -> bool:
    """Whether nothing changed that matters here: mostly it is a heartbeat."""
    return (
        one.metadata.labels == other.metadata.labels
        and one.spec == other.spec
        and one.status.allocatable == other.status.allocatable
    )


def same(one: Place, other: Place) -> bool:
    return (
        one.node == other.node
        and one.leaving == other.leaving
        and (one.demand is other.demand or one.demand == other.demand)
    )
