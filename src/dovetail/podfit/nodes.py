"""All nodes in columns, and what is on them: the state that filters and scores look at."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.core.rows import Rows
from dovetail.podfit.columns import Column, Mask, Numbers
from dovetail.podfit.kinds import Kinds
from dovetail.podfit.labels import NodeLabels
from dovetail.podfit.objects import Taint
from dovetail.podfit.pods import CPU, MEMORY
from dovetail.podfit.room import Room
from dovetail.podfit.selectors import Labels
from dovetail.podfit.tally import Tally
from dovetail.podfit.terms import PodKind, PodTerm, Port

Taints = tuple[Taint, ...]


class Nodes:
    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.labels = NodeLabels()
        self.room = Room()
        self.weight = Room()
        """As scores count: only CPU and memory."""
        self.scale = {CPU: Column(np.float64), MEMORY: Column(np.float64)}
        """One over what the node has of it, since scores are about shares; 0 if it has none."""
        self.taint_sets = Kinds[Taints]()
        self.namespaces: dict[str, Labels] = {}
        self.pods = Tally[PodKind]()
        self.ports = Tally[Port]()
        self.apart = Tally[PodTerm]()
        """What pods on nodes demand to be kept away."""
        self.likes = Tally[tuple[PodTerm, int]]()
        """What pods on nodes like to have near, with the weight."""
        self._present = Column(np.bool_)
        self._unschedulable = Column(np.bool_)
        self._taints = Column(np.int32)

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

    def reach(self) -> None:
        """As many rows as there are names for."""
        size = len(self.rows)
        if size > self.size:
            for column in (self._present, self._unschedulable, self._taints, *self.scale.values()):
                column.reach(size)
            for part in (self.labels, self.room, self.weight):
                part.reach(size)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        self.room.set_allocatable(row, amounts)
        self.weight.set_allocatable(row, {name: amounts.get(name, 0) for name in self.scale})
        for name, scale in self.scale.items():
            has = amounts.get(name, 0)
            scale.values[row] = 1 / has if has > 0 else 0

    def set_taints(self, row: int, taints: Taints) -> None:
        number = self.taint_sets.take(taints) if taints else 0
        self.taint_sets.give(int(self.taints[row]))
        self.taints[row] = number

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """None: it is no more."""
        if self.namespaces.get(name) == labels:
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        for tally in (self.pods, self.apart, self.likes):
            tally.forget()
