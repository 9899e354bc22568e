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

    workload: int
    request: PodRequest
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
    while True:
        unsafe = [unit for unit in analysis.units if not analysis.is_safe(unit)]
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
            unproved = dict.fromkeys(unit.workload for unit in unsafe)
            return Pins(found, tuple(unproved))
        unit, other = invader
        names = [demands[each.workload].workload.name for each in (other, unit)]
        where = ", ".join(unit.planned)
        why = f"elsewhere {names[0]} could take the room of {names[1]} on {where}"
        found[other.workload] = Pin(other.planned, why)
        analysis.pin(other.workload)


class _Analysis:
    def __init__(self, packer: Packer, demands: Sequence[WorkloadDemand], fit: Fit) -> None:
        self._table = packer.table
        self.units: list[_Unit] = []
        for at, demand in enumerate(demands):
            self.units += self._units(packer, at, demand, fit)
        self._relations: Relations = relations_among(
            packer.table.nodes, [each.request for each in self.units]
        )
        self._room: dict[tuple[int, str], int] = {}

    def _units(self, packer: Packer, at: int, demand: WorkloadDemand, fit: Fit) -> Iterator[_Unit]:
        request = packer.written_request(demand)
        fabric = [
            SelectorRequirement(key=key, operator="In", values=(fit.fabrics[at, key],))
            for key in demand.within_one
            if (at, key) in fit.fabrics
        ]
        request = replace(request, node_labels=(*request.node_labels, *fabric))
        if demand.workload.per_node:
            for name in fit.nodes[at]:
                own = pinned(request, (name,))
                yield _Unit(at, own, 1, (name,), frozenset((name,)))
        elif fit.nodes[at]:
            mask = packer.table.filter(request, among=packer.ready, without=Reason.AMOUNT).mask
            rows = packer.table.nodes.rows
            nodes = frozenset(name for name in packer.ready if mask[rows.row(name)])
            planned = tuple(sorted(fit.nodes[at]))
            yield _Unit(at, request, demand.workload.count, planned, nodes | {*planned})

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
        at = self.units.index(unit)
        near, spread = self._relations.near, self._relations.spread
        if at in {each.kind for each in near} | {each.kind for each in spread}:
            return False
        blocked = self._nodes_in_conflict(at)
        if blocked is None:
            return False
        open_nodes = []
        for name in unit.nodes:
            costs = self._costs(unit, name)
            if costs is None:
                blocked += 1
            else:
                open_nodes.append(costs)
        for resource, _ in unit.request.amounts:
            blocked += self._blockable(unit, resource, open_nodes)
        return blocked < len(unit.nodes)

    def _costs(self, unit: _Unit, name: str) -> dict[str, int] | None:
        """What others would have to take of each resource for the node to be of no use, where they
        can; None: it is of no use anyway."""
        found = {}
        for resource, amount in unit.request.amounts:
            cost = self._table.free(name, resource) - amount + 1
            if cost <= 0:
                return None
            if self._most_taken(unit, name, resource) >= cost:
                found[resource] = cost
        return found

    def _blockable(
        self, unit: _Unit, resource: str, open_nodes: Sequence[Mapping[str, int]]
    ) -> int:
        """How many nodes others can block by what they ask of the resource."""
        left = sum(
            dict(each.request.amounts).get(resource, 0) * (each.count - (each is unit))
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
            dict(each.request.amounts).get(resource, 0)
            * min(each.count - (each is unit), self._fitting(at, each, name))
            for at, each in enumerate(self.units)
            if name in each.nodes
        )

    def _fitting(self, at: int, unit: _Unit, name: str) -> int:
        """How many of it alone the node takes."""
        key = at, name
        if key not in self._room:
            self._room[key] = min(
                max(self._table.free(name, resource), 0) // amount
                for resource, amount in unit.request.amounts
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
