"""Who has how much memory on which NUMA nodes: a state in, a new state out. Pure.

Memory and huge pages are counted by node. A node that is in use belongs to one group of nodes:
who is bound to it is bound to just these. So what one takes from a group cannot leave another short
who counted on a part of it.

What containers have outlives changes of the machine: of nodes that are gone nothing is left to
use, but who had them is bound to the others it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil

import msgspec

from dovetail.core import quantity
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint
from dovetail.node.plugins.common.holdings import (
    PluginState,
    ResourceDecisions,
    ResourceHolding,
    owner_of,
)
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.topology import Machine

MEMORY = "memory"
PAGES = "hugepages-"

NODE = re.compile(r"numa([0-9]{1,4})", re.ASCII)
"""A NUMA node as the device is called that its pages are."""

ByNode = Mapping[int, int]
"""Bytes."""


class MemoryHolding(ResourceHolding, frozen=True, kw_only=True):
    wanted: Mapping[str, int] = {}
    """Bytes by resource."""
    nodes: CpuSet = CpuSet()
    """The group it is bound to; none if it may be anywhere."""
    given: Mapping[str, ByNode] = {}
    pinned: Mapping[str, ByNode] = {}
    """Of what was given: huge pages that a resource class chose, whatever the role."""


class MemoryState(PluginState[MemoryHolding], frozen=True, kw_only=True):
    pass


class FreeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is left for a container, whose own holding does not count."""

    free: Mapping[str, ByNode]
    barred: Mapping[int, str]
    """Nodes that are not for it, and why."""
    groups: Mapping[int, CpuSet]
    """Of nodes in use, the group they belong to."""

    def suits(
        self,
        nodes: CpuSet,
        wanted: Mapping[str, int],
        pinned: Mapping[str, ByNode] | None = None,
    ) -> bool:
        """`pinned`: which part of it is to be on which node."""
        return (
            not nodes & self.barred.keys()
            and all(self.groups.get(node, nodes) == nodes for node in nodes)
            and all(
                sum(self.free[name].get(node, 0) for node in nodes) >= amount
                for name, amount in wanted.items()
            )
            and all(
                self.free[name].get(node, 0) >= amount
                for name, parts in (pinned or {}).items()
                for node, amount in parts.items()
            )
        )

    def shortage(self, node: int, wanted: Mapping[str, int]) -> str:
        """Why a node is not enough."""
        free = ", ".join(
            f"{written(self.free[name].get(node, 0))} of {name} free" for name in wanted
        )
        group = self.groups.get(node, CpuSet())
        grouped = f", in a group with nodes {group}" if len(group) > 1 else ""
        return f"node {node}: {self.barred.get(node) or free}{grouped}"


class Memory(ResourceDecisions):
    """The decisions about memory and huge pages."""

    def __init__(self, machine: Machine, book: RoleBook, resource: str = MEMORY) -> None:
        super().__init__(machine, book, resource)
        self.nodes = CpuSet(node.id for node in machine.nodes if node.memory)
        self.allocatable = allocatable(machine, book)

    def hints(self, state: MemoryState, request: PluginRequest) -> tuple[Hint, ...] | None:
        """None if it has no preference; raises Impossible if it can be nowhere."""
        wanted, pinned = self.wanted(request), pages_of(request)
        if not wanted:
            return None
        before = state.own(request)
        own = CpuSet(node for each in before for node in self.own(each))
        if own and asked_by(before) == wanted and all(map(self.intact, before)):
            return (self.hint_on(own, wanted),)
        least = self.fewest_nodes(wanted)
        room = self.room(state, request)
        suiting = [nodes for nodes in self.groups(request) if room.suits(nodes, wanted, pinned)]
        if not suiting:
            raise Impossible(self.shortage(room, request, wanted))
        if pinned:
            return (Hint(suiting[0].mask, preferred=True),)
        # Who grows stays where it is, if it can.
        places = [own] if own in suiting else suiting
        return tuple(Hint(nodes.mask, preferred=len(nodes) == least) for nodes in places)

    def hint_of(self, holding: MemoryHolding) -> Hint:
        if holding.pinned:
            return Hint(self.own(holding).mask, preferred=True)
        return self.hint_on(self.own(holding), holding.wanted)

    def hint_on(self, nodes: CpuSet, wanted: Mapping[str, int]) -> Hint:
        return Hint(nodes.mask, preferred=len(nodes) <= self.fewest_nodes(wanted))

    def own(self, holding: MemoryHolding) -> CpuSet:
        """The nodes it is bound to and that are still there."""
        return holding.nodes & self.nodes

    def intact(self, holding: MemoryHolding) -> bool:
        return holding.nodes <= self.nodes

    def allocate(self, state: MemoryState, request: PluginRequest) -> MemoryState:
        """With the container's holding in it; raises Impossible."""
        wanted, pinned = self.wanted(request), pages_of(request)
        before = state.of(request.pod, request.container)
        asked = wanted, request.role.name, pinned
        same = before and (before.wanted, before.role, before.pinned) == asked
        if before and same and self.intact(before):
            return state
        room = self.room(state, request)
        own = before.nodes if before else CpuSet()
        nodes = self.group(room, request, wanted, own) if wanted else CpuSet()
        holding = MemoryHolding(
            **owner_of(request),
            wanted=wanted,
            nodes=nodes,
            given={
                name: drain(room.free[name], sorted(nodes), amount, pinned.get(name, {}))
                for name, amount in wanted.items()
            },
            pinned=pinned,
        )
        return state.with_holding(holding)

    def wanted(self, request: PluginRequest) -> dict[str, int]:
        """Bytes by resource; nothing if it is not to be bound."""
        pinned = pages_of(request)
        found = {
            name: max(ceil(amount), sum(pinned.get(name, {}).values()))
            for name, amount in request.amounts.items()
            if name in pinned
            or (
                request.role.memory.bind
                and (name in (self.resource, MEMORY) or name.startswith(PAGES))
            )
        }
        for name in found:
            if name not in self.allocatable:
                known = ", ".join(self.allocatable)
                raise Impossible(f"this machine has no {name}; it has {known}")
        return found

    def group(
        self, room: FreeMemory, request: PluginRequest, wanted: Mapping[str, int], own: CpuSet
    ) -> CpuSet:
        """The smallest group that suits and contains the nodes that the agent wants.

        Of those, its `own`, if it can stay there: pages that are there do not move. For nodes that
        are preferred a wider group will do only if so much takes as many nodes.
        """
        pinned = pages_of(request)
        suiting = [nodes for nodes in self.groups(request) if room.suits(nodes, wanted, pinned)]
        if pinned and suiting:
            # The choice is made, and the agent has heard of it by a hint.
            return suiting[0]
        agreed = [nodes for nodes in suiting if (request.nodes or CpuSet()) <= nodes]
        if request.nodes is not None and request.preferred:
            least = self.fewest_nodes(wanted)
            agreed = [each for each in agreed if each == request.nodes or len(each) == least]
        chosen = agreed if agreed or request.preferred else suiting
        if not chosen:
            raise Impossible(self.shortage(room, request, wanted))
        return own if own in chosen and len(own) == len(chosen[0]) else chosen[0]

    def groups(self, request: PluginRequest) -> Iterator[CpuSet]:
        """Small ones first."""
        pinned = CpuSet(node for nodes in pages_of(request).values() for node in nodes)
        if pinned:
            return iter([pinned] if pinned <= self.nodes else [])
        return subsets(self.nodes, 1 if request.role.memory.numa == "single" else len(self.nodes))

    def room(self, state: MemoryState, request: PluginRequest) -> FreeMemory:
        others = [each for each in state.holdings if not each.is_for(request)]
        return FreeMemory(
            free=self.free(others, request.pod),
            barred=self.barred(others, request),
            groups={node: self.own(each) for each in others for node in self.own(each)},
        )

    def free(self, holdings: Iterable[MemoryHolding], pod: str = "") -> Mapping[str, ByNode]:
        """For this pod: what its init containers had can be had again."""
        left = {name: dict(by_node) for name, by_node in self.allocatable.items()}
        by_pod: dict[str, list[MemoryHolding]] = {}
        for each in holdings:
            by_pod.setdefault(each.pod, []).append(each)
        for name, nodes in left.items():
            for uid, own in by_pod.items():
                for node in nodes:
                    init, rest = _used(own, name, node)
                    nodes[node] -= rest if uid == pod else max(init, rest)
        return left

    def fewest_nodes(self, wanted: Mapping[str, int]) -> int:
        """How many nodes it would take if nothing were in use."""
        empty = FreeMemory(free=self.allocatable, barred={}, groups={})
        every = subsets(self.nodes, len(self.nodes))
        return next((len(each) for each in every if empty.suits(each, wanted)), len(self.nodes))

    def barred(self, holdings: Iterable[MemoryHolding], request: PluginRequest) -> dict[int, str]:
        return self.barred_nodes(request, ((each, self.own(each)) for each in holdings))

    def shortage(self, room: FreeMemory, request: PluginRequest, wanted: Mapping[str, int]) -> str:
        """Which nodes are short, or why they are not for it."""
        told = "; ".join(room.shortage(node, wanted) for node in sorted(self.nodes))
        amounts = ", ".join(f"{written(each)} of {name}" for name, each in wanted.items())
        given = ", ".join(f"{each.resource} of {each.id}" for each in request.chosen)
        by_class = f", and was given {given} by a resource class" if given else ""
        return f"{request.shown} wants {amounts} (role {request.role.name}){by_class}; {told}"


def asked_by(holdings: Sequence[MemoryHolding]) -> dict[str, int]:
    """Bytes that a container, or all of a pod together, asked for, by resource.

    Init containers are over before the others start.
    """
    found = {}
    for name in {name for each in holdings for name in each.wanted}:
        init = (each.wanted.get(name, 0) for each in holdings if each.init)
        rest = sum(each.wanted.get(name, 0) for each in holdings if not each.init)
        found[name] = max(rest, *init, 0)
    return found


def subsets(nodes: CpuSet, most: int) -> Iterator[CpuSet]:
    """With up to so many nodes, small ones first."""
    ascending = sorted(nodes)
    return (CpuSet(each) for size in range(1, most + 1) for each in combinations(ascending, size))


def drain(free: ByNode, nodes: Iterable[int], amount: int, pinned: ByNode | None = None) -> ByNode:
    """Node by node: the next is used when the one before has nothing left.

    `pinned`: what is on which node in any case.
    """
    given = dict(pinned or {})
    amount -= sum(given.values())
    for node in nodes:
        part = min(amount, max(0, free.get(node, 0) - given.get(node, 0)))
        if part > 0:
            given[node] = given.get(node, 0) + part
            amount -= part
    return dict(sorted(given.items()))


def page_size(resource: str) -> int | None:
    """Of `hugepages-2Mi`, in bytes; nothing if it is no such resource."""
    try:
        return int(quantity.parse(resource.removeprefix(PAGES))) if PAGES in resource else None
    except quantity.BadQuantity:
        return None


def pages_of(request: PluginRequest) -> dict[str, dict[int, int]]:
    """Bytes by resource and node of huge pages that a resource class gave. Raises Impossible."""
    found: dict[str, dict[int, int]] = {}
    for each in request.chosen:
        node, size = NODE.fullmatch(each.id), page_size(each.resource)
        if node is None or size is None:
            raise Impossible(f"{each.resource} {each.id} are no huge pages of a NUMA node")
        by_node = found.setdefault(each.resource, {})
        by_node[int(node[1])] = by_node.get(int(node[1]), 0) + size * each.units
    return found


def written(amount: int) -> str:
    return quantity.format(Fraction(amount), binary=True)


def allocatable(machine: Machine, book: RoleBook) -> dict[str, dict[int, int]]:
    """Bytes by resource and node: huge pages are no ordinary memory any more."""
    found: dict[str, dict[int, int]] = {MEMORY: {}}
    for node in machine.nodes:
        huge = {
            f"{PAGES}{written(size)}": size * each.total for size, each in node.hugepages.items()
        }
        for name, amount in sorted(huge.items()):
            found.setdefault(name, {})[node.id] = amount
        reserved = book.reserved.memory.get(node.id, 0)
        if node.memory:
            found[MEMORY][node.id] = max(0, node.memory - reserved - sum(huge.values()))
    return found


def _used(holdings: Iterable[MemoryHolding], resource: str, node: int) -> tuple[int, int]:
    """By a pod's init containers, of which one runs at a time, and by its others together."""
    init, rest = 0, 0
    for each in holdings:
        amount = each.given.get(resource, {}).get(node, 0)
        if each.init:
            init = max(init, amount)
        else:
            rest += amount
    return init, rest
