"""The ledger of machines in memory: sells what is there, all or nothing, as `ledger/machines`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from dovetail.machines.documents import MachineSpec
from dovetail.machines.names import GPU_TYPE
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.machines.snapshot import UnitRecord
from dovetail.podfit.objects import Node
from dovetail.podfit.pod_sum import CPU, MEMORY, allocatable_of

MEBIBYTE = 2**20


class UnitRefused(Exception):
    """Somebody was faster, or there is no such thing."""


class WantedUnit(msgspec.Struct, frozen=True):
    uid: str
    type: str
    node: str
    is_stock: bool
    at: int


class SimulatedLedger:
    def __init__(self, nodes: Mapping[str, Node], gpus_of_others: Mapping[str, int]) -> None:
        """Both as they are at any time: the node pool controller enters nodes by itself."""
        self._nodes = nodes
        self._gpus_of_others = gpus_of_others
        self._shapes: Mapping[str, UnitShape] = {}
        self._available: Mapping[str, int] = {}
        self.units: dict[str, UnitRecord] = {}
        """By the uid of who holds it."""

    def set_stock(self, spec: MachineSpec) -> None:
        self._shapes = {**self._shapes, **shapes_of(spec)}
        self._available = {each.name: each.available for each in spec.machine_types}

    def release(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.units.pop(uid, None)

    def move(self, take: Sequence[WantedUnit], release: Collection[str]) -> None:
        """Raises UnitRefused, changing nothing."""
        before = dict(self.units)
        self.release(release)
        try:
            for each in take:
                self._take(each)
                self._refuse_oversale(self._shapes[each.type])
        except UnitRefused:
            self.units = before
            raise

    def adopt(self, unit: WantedUnit) -> None:
        """What is in use is recorded, even beyond the stock."""
        before = dict(self.units)
        try:
            self._take(unit)
        except UnitRefused:
            self.units = before
            raise

    def _take(self, unit: WantedUnit) -> None:
        there = self.units.get(unit.uid)
        since = unit.at if there is None else there.since
        self.units[unit.uid] = UnitRecord(unit.type, unit.node, unit.is_stock, since)
        if unit.node not in self._nodes:
            raise UnitRefused(f"{unit.node} is not known")
        has = allocatable_of(self._nodes[unit.node].status.allocatable)
        taken = [
            self._shapes[each.type].amounts
            for each in self.units.values()
            if each.node == unit.node
        ]
        gpus = sum(each.get(GPU_TYPE, 0) for each in taken)
        if (
            sum(each[CPU] // 1000 for each in taken) > has.get(CPU, 0) // 1000
            or sum(each[MEMORY] // MEBIBYTE for each in taken) > has.get(MEMORY, 0) // MEBIBYTE
            or gpus + self._gpus_of_others.get(unit.node, 0) > has.get(GPU_TYPE, 0)
        ):
            raise UnitRefused(f"{unit.node} is full for {unit}")

    def _refuse_oversale(self, shape: UnitShape) -> None:
        if self.taken(shape.name) > self._available.get(shape.name, 0):
            raise UnitRefused(f"{shape.name} is sold out")
        if self.shares_of(shape.root) > self._available.get(shape.root, 0):
            raise UnitRefused(f"{shape.root} is sold out")

    def taken(self, name: str) -> int:
        """Units of the type, sold or held as stock."""
        return sum(each.type == name for each in self.units.values())

    def shares_of(self, root: str) -> Fraction:
        """Units of a root, those of its dependents as shares."""
        shapes = (self._shapes[each.type] for each in self.units.values())
        return sum((each.share for each in shapes if each.root == root), Fraction(0))
