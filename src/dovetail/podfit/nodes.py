"""Columns by node: the state that filters and scores look at; `NodeTable` keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dovetail.core.columns import Column, Mask, Numbers
from dovetail.core.interned import Interned
from dovetail.core.rows import Rows
from dovetail.podfit.labels import NodeLabels
from dovetail.podfit.objects import Taint
from dovetail.podfit.pod_sum import CPU, MEMORY, MOST_UNITS_COUNTED
from dovetail.podfit.row_multiset import RowMultiset
from dovetail.podfit.selectors import Labels
from dovetail.podfit.terms import HostPort, InlineDisk, PodTerm, SelectablePod

Taints = tuple[Taint, ...]
Features = tuple[str, ...]


class NodeResources:
    """What nodes have and what is free of it, by row and resource.

    Sums are Python's integers, which never overflow; columns end where it makes no difference any
    more.
    """

    def __init__(self) -> None:
        self.free: dict[str, Column] = {}
        self.allocatable: dict[str, Column] = {}
        self._has: list[dict[str, int]] = []
        self._used: list[dict[str, int]] = []

    def reach(self, size: int) -> None:
        for columns in (self.free, self.allocatable):
            for column in columns.values():
                column.reach(size)
        while len(self._has) < size:
            self._has.append({})
            self._used.append({})

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        before, self._has[row] = self._has[row], dict(amounts)
        for name in before.keys() | amounts.keys():
            self._write(row, name)
            self.allocatable[name].values[row] = amounts.get(name, 0)

    def add(self, row: int, amounts: Iterable[tuple[str, int]], sign: int = 1) -> None:
        """Use amounts of the row, or give them back with a `sign` of -1."""
        used = self._used[row]
        for name, amount in amounts:
            used[name] = used.get(name, 0) + sign * amount
            self._write(row, name)
            if not used[name]:
                del used[name]

    def amounts(self, row: int, name: str) -> tuple[int, int]:
        """What the row has of it, and what is free: below nothing, if it was given too much."""
        has = self._has[row].get(name, 0)
        return has, has - self._used[row].get(name, 0)

    def _write(self, row: int, name: str) -> None:
        if name not in self.free:
            for columns in (self.free, self.allocatable):
                columns[name] = Column(np.int64)
                columns[name].reach(len(self._has))
        free = self.amounts(row, name)[1]
        self.free[name].values[row] = max(free, -MOST_UNITS_COUNTED)


class Nodes:
    """Rows of a cluster's nodes: what they are, and what is on them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.labels = NodeLabels()
        self.resources = NodeResources()
        self.score_resources = NodeResources()
        """As scores count: only CPU and memory, with defaults for pods that request none."""
        self.scale = {CPU: Column(np.float64), MEMORY: Column(np.float64)}
        """One over what the node has of it, since scores are about shares; 0 if it has none."""
        self.taint_sets = Interned[Taints]()
        self.feature_sets = Interned[Features]()
        self.namespaces: dict[str, Labels] = {}
        self.pods = RowMultiset[SelectablePod]()
        self.ports = RowMultiset[HostPort]()
        self.disks = RowMultiset[InlineDisk]()
        self.pod_anti_affinity = RowMultiset[PodTerm]()
        """Terms by which pods on nodes keep others away."""
        self.preferences = RowMultiset[tuple[PodTerm, int]]()
        """Terms of what pods on nodes prefer to have near, with their weights."""
        self._present = Column(np.bool_)
        self._unschedulable = Column(np.bool_)
        self._taints = Column(np.int32)
        self._features = Column(np.int32)

    @property
    def size(self) -> int:
        return len(self._present.values)

    @property
    def present(self) -> Mask:
        """Rows that are nodes."""
        found: Mask = self._present.values
        return found

    @property
    def unschedulable(self) -> Mask:
        found: Mask = self._unschedulable.values
        return found

    @property
    def taints(self) -> Numbers:
        """By row, the number of its taint set; 0 has none."""
        found: Numbers = self._taints.values
        return found

    @property
    def features(self) -> Numbers:
        """By row, the number of the set of features that it declares; 0 declares none."""
        found: Numbers = self._features.values
        return found

    def reach(self) -> None:
        """As many rows as there are names for."""
        size = len(self.rows)
        if size > self.size:
            columns = (self._present, self._unschedulable, self._taints, self._features)
            for column in (*columns, *self.scale.values()):
                column.reach(size)
            for part in (self.labels, self.resources, self.score_resources):
                part.reach(size)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        self.resources.set_allocatable(row, amounts)
        self.score_resources.set_allocatable(
            row, {name: amounts.get(name, 0) for name in self.scale}
        )
        for name, scale in self.scale.items():
            has = amounts.get(name, 0)
            scale.values[row] = 1 / has if has > 0 else 0

    def set_taints(self, row: int, taints: Taints) -> None:
        number = self.taint_sets.take(taints) if taints else 0
        self.taint_sets.give(int(self.taints[row]))
        self.taints[row] = number

    def set_features(self, row: int, features: Features) -> None:
        number = self.feature_sets.take(features) if features else 0
        self.feature_sets.give(int(self.features[row]))
        self.features[row] = number

    def set_namespace(self, name: str, labels: Labels | None) -> bool:
        """None: it is no more. False if nothing changed."""
        if self.namespaces.get(name) == labels:
            return False
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        for multiset in (self.pods, self.pod_anti_affinity, self.preferences):
            multiset.forget()
        return True
