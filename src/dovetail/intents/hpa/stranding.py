"""Stranding: could a scheduler that knows nothing of the plan leave a pod without a node?

Placements ask. kube-scheduler puts pods on nodes one by one, in no order that is known, so a pod
may take the room that the plan meant for another that fits nowhere else. A pod is safe if, however
the others go, some node is left for it. That is proved by what it would take to block every node
that it could go to: each costs at least as much of some resource as leaves too little of it there,
and the others have only so much to ask for. Where the proof fails, workloads that could come to the
nodes of that pod without being planned there are pinned to the nodes that they are planned on, and
it is tried again; every turn pins one more, so it ends. Pods that want to be near others, or to be
spread, are not proved safe: that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.core.explanation import Reason
from dovetail.intents.hpa.demand import WorkloadDemand
from dovetail.intents.hpa.packer import Fit, Packer, pinned
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.packing.relations import NODE, Relations, relations_among
from dovetail.podfit.pod_request import PodRequest


class Pin(msgspec.Struct, frozen=True):
    nodes: tuple[str, ...]
    why: str


class Pins(msgspec.Struct, frozen=True):
    by_workload: Mapping[int, Pin]
    unproved: tuple[int, ...]
    """Workloads that a scheduler may leave without a node all the same."""


class _Unit(msgspec.Struct):
    """Pods that a scheduler sees as equal: those of a workload, or of a DaemonSet on a node."""

    at: int
    """Its place among the units."""
    workload: int
    request: PodRequest
    amounts: dict[str, int]
    count: int
    planned: tuple[str, ...]
    nodes: frozenset[str]
    """That it may go to, as far as room is there."""


def pins_of(packer: Packer, demands: Sequence[WorkloadDemand], fit: Fit, *, pins_all: bool) -> Pins:
    """Which workloads of a plan have to be pinned, or (`pins_all`) all of them."""
    found: dict[int, Pin] = {}
    analysis = _Analysis(packer, demands, fit)
    if pins_all:
        for at, demand in enumerate(demands):
            if fit.nodes[at] and not demand.workload.per_node:
                found[at] = Pin(tuple(sorted(fit.nodes[at])), "pin: nodes is asked for")
                analysis.pin(at)
    unsafe = [unit for unit in analysis.units if not analysis.is_safe(unit)]
    while True:
        invader = next(
            (
                (unit, other)
                for unit in unsafe
                for other in analysis.invaders(unit)
                if other.workload not in found
            ),
            None,
        )
        if invader is None:
            return Pins(found, tuple(dict.fromkeys(unit.workload for unit in unsafe)))
        unit, other = invader
        names = [demands[each.workload].workload.name for each in (other, unit)]
        where = ", ".join(unit.planned)
        why = f"elsewhere {names[0]} could take the room of {names[1]} on {where}"
        found[other.workload] = Pin(other.planned, why)
        analysis.pin(other.workload)
        # Others are as safe as before, with fewer pods that could come.
        again = [
            *unsafe,
            *(each for each in analysis.units if each is other and each not in unsafe),
        ]
        unsafe = [each for each in again if not analysis.is_safe(each)]


class _Analysis:
    def __init__(self, packer: Packer, demands: Sequence[WorkloadDemand], fit: Fit) -> None:
        self._table = packer.table
        self.units: list[_Unit] = []
        for at, demand in enumerate(demands):
            for unit in self._units(packer, at, demand, fit):
                unit.at = len(self.units)
                self.units.append(unit)
        self._relations: Relations = relations_among(
            packer.table.nodes, [each.request for each in self.units]
        )
        self._room: dict[tuple[int, str], int] = {}

    def _units(self, packer: Packer, at: int, demand: WorkloadDemand, fit: Fit) -> Iterator[_Unit]:
        request = packer.written_request(demand)
        fabric = [
            SelectorRequirement(key=key, operator="In", values=(value,))
            for (on, key), value in fit.fabrics.items()
            if on == at
        ]
        request = replace(request, node_labels=(*request.node_labels, *fabric))
        if demand.workload.per_node:
            for name in fit.nodes[at]:
                own = pinned(request, (name,))
                yield _Unit(0, at, own, dict(own.amounts), 1, (name,), frozenset((name,)))
        elif fit.nodes[at]:
            mask = packer.table.filter(request, among=packer.ready, without=Reason.AMOUNT).mask
            rows = packer.table.nodes.rows
            nodes = frozenset(name for name in packer.ready if mask[rows.row(name)])
            planned = tuple(sorted(fit.nodes[at]))
            nodes |= {*planned}
            count = demand.workload.count
            yield _Unit(0, at, request, dict(request.amounts), count, planned, nodes)

    def pin(self, workload: int) -> None:
        for unit in self.units:
            if unit.workload == workload:
                unit.nodes = unit.nodes & {*unit.planned}

    def invaders(self, of: _Unit) -> Iterator[_Unit]:
        """Those that could come to nodes of its plan without being planned there."""
        for unit in self.units:
            if unit is not of and unit.nodes & {*of.planned} - {*unit.planned}:
                yield unit
        # Itself last: it may stand in the way of others, and so of where these make way.
        if of.nodes - {*of.planned}:
            yield of

    def is_safe(self, unit: _Unit) -> bool:
        """Whether a node is left for one pod of it, however all other pods go."""
        near, spread = self._relations.near, self._relations.spread
        if unit.at in {each.kind for each in near} | {each.kind for each in spread}:
            return False
        conflicts = self._nodes_in_conflict(unit.at)
        if conflicts is None:
            return False
        costs = [
            (name, found) for name in unit.nodes if (found := self._costs(unit, name)) is not None
        ]
        if self._is_left(unit, conflicts, [found for _, found in costs]):
            return True
        # Once more, with what can come to each node: less than others ask for in all.
        possible = [
            {
                resource: cost
                for resource, cost in found.items()
                if self._most_taken(unit, name, resource) >= cost
            }
            for name, found in costs
        ]
        return self._is_left(unit, conflicts, possible)

    def _costs(self, unit: _Unit, name: str) -> dict[str, int] | None:
        """What others would have to take of each resource for the node to be of no use; None: it is
        of no use anyway."""
        found = {}
        for resource, amount in unit.amounts.items():
            cost = self._table.free(name, resource) - amount + 1
            if cost <= 0:
                return None
            found[resource] = cost
        return found

    def _is_left(self, unit: _Unit, conflicts: int, nodes: Sequence[Mapping[str, int]]) -> bool:
        """Whether of these nodes one is left, with as many blocked as can be."""
        blocked = sum(self._blockable(unit, resource, nodes) for resource in unit.amounts)
        return conflicts + blocked < len(nodes)

    def _blockable(
        self, unit: _Unit, resource: str, open_nodes: Sequence[Mapping[str, int]]
    ) -> int:
        """How many nodes others can block by what they ask of the resource."""
        left = sum(
            each.amounts.get(resource, 0) * (each.count - (each is unit))
            for each in self.units
            if each.nodes & unit.nodes
        )
        found = 0
        for cost in sorted(each[resource] for each in open_nodes if resource in each):
            if cost > left:
                break
            left -= cost
            found += 1
        return found

    def _most_taken(self, unit: _Unit, name: str, resource: str) -> int:
        """By others, if all that can come to the node do."""
        return sum(
            each.amounts.get(resource, 0)
            * min(each.count - (each is unit), self._fitting(each, name))
            for each in self.units
            if resource in each.amounts and name in each.nodes
        )

    def _fitting(self, unit: _Unit, name: str) -> int:
        """How many of it alone the node takes."""
        key = unit.at, name
        if key not in self._room:
            self._room[key] = min(
                max(self._table.free(name, resource), 0) // amount
                for resource, amount in unit.amounts.items()
            )
        return self._room[key]

    def _nodes_in_conflict(self, at: int) -> int | None:
        """How many nodes others make impossible by being there: ports and anti-affinity; None: a
        pod of theirs can do so for more than a node."""
        found = 0
        for pair in self._relations.apart:
            if at in (pair.one, pair.other):
                if not self._is_of_nodes(pair.topology):
                    return None
                other = self.units[pair.other if pair.one == at else pair.one]
                found += other.count - (other is self.units[at])
        return found

    def _is_of_nodes(self, topology: str) -> bool:
        """Whether no two nodes are in one domain."""
        if topology == NODE:
            return True
        nodes = self._table.nodes
        domains = nodes.labels.column(topology).numbers[nodes.present]
        domains = domains[domains > 0]
        return len(set(domains.tolist())) == len(domains)
