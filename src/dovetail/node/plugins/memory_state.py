"""Who has how much memory on which NUMA nodes: a state in, a new state out. Pure.

Memory and huge pages are counted by node. A node that is in use belongs to one group of nodes:
who is bound to it is bound to just these. So what one takes from a group cannot leave another short
who counted on a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from dovetail.node.cpus import CpuSet
from dovetail.node.hints.hint import Hint
from dovetail.node.plugins.asks import Ask, Impossible
from dovetail.node.plugins.holdings import Holding, State
from dovetail.node.plugins.neighbours import Neighbour, barred
from dovetail.node.plugins.quantity import pages, shown_bytes
from dovetail.node.plugins.roles import Book
from dovetail.node.topology import Machine

MEMORY = "memory"

ByNode = Mapping[int, int]
"""Bytes."""


class MemoryHolding(Holding, frozen=True, kw_only=True):
    wanted: Mapping[str, int] = {}
    """Bytes by resource."""
    nodes: CpuSet = CpuSet()
    """The group it is bound to; none if it may be anywhere."""
    given: Mapping[str, ByNode] = {}


class MemoryState(State[MemoryHolding], frozen=True, kw_only=True):
    pass


class Memory:
    """The decisions, on one machine and by one file of roles."""

    def __init__(self, machine: Machine, book: Book, resource: str = MEMORY) -> None:
        self.machine, self.book, self.resource = machine, book, resource
        self.nodes = CpuSet(node.id for node in machine.nodes if node.memory)
        self.allocatable = allocatable(machine, book)

    def hints(self, state: MemoryState, ask: Ask) -> tuple[Hint, ...] | None:
        """None if it has no preference; raises Impossible if it can be nowhere."""
        wanted = self.wanted(ask)
        if not wanted:
            return None
        before = state.of(ask.pod, ask.container)
        if before and before.wanted == wanted:
            return (self.hint_of(before),)
        least = self.fewest_nodes(wanted)
        found = tuple(
            Hint(CpuSet(nodes).mask, preferred=len(nodes) == least)
            for nodes in self.groups(ask)
            if self.suits(state, ask, nodes, wanted)
        )
        if not found:
            raise Impossible(self.shortage(state, ask, wanted))
        return found

    def hint_of(self, holding: MemoryHolding) -> Hint:
        least = self.fewest_nodes(holding.wanted)
        return Hint(holding.nodes.mask, preferred=len(holding.nodes) <= least)

    def allocate(self, state: MemoryState, ask: Ask) -> MemoryState:
        """With the container's holding in it; raises Impossible."""
        wanted = self.wanted(ask)
        before = state.of(ask.pod, ask.container)
        if before and before.wanted == wanted and before.role == ask.role.name:
            return state
        nodes = self.group(state, ask, wanted) if wanted else CpuSet()
        given = {
            resource: self.drained(state, ask, resource, sorted(nodes), amount)
            for resource, amount in wanted.items()
        }
        holding = MemoryHolding(
            pod=ask.pod,
            namespace=ask.namespace,
            name=ask.name,
            container=ask.container,
            init=ask.init,
            role=ask.role.name,
            wanted=wanted,
            nodes=nodes,
            given=given,
        )
        return state.with_holding(holding)

    def wanted(self, ask: Ask) -> dict[str, int]:
        """Bytes by resource; nothing if it is not to be bound."""
        if not ask.role.memory.bind:
            return {}
        found = {
            name: -(-amount.numerator // amount.denominator)
            for name, amount in ask.amounts.items()
            if name in (self.resource, MEMORY) or pages(name)
        }
        for name in found:
            if name not in self.allocatable:
                known = ", ".join(self.allocatable)
                raise Impossible(f"this machine has no {name}; it has {known}")
        return found

    def group(self, state: MemoryState, ask: Ask, wanted: Mapping[str, int]) -> CpuSet:
        """The smallest group that suits and contains the nodes that the agent wants."""
        agreed = ask.nodes or CpuSet()
        for nodes in self.groups(ask):
            if agreed <= set(nodes) and self.suits(state, ask, nodes, wanted):
                return CpuSet(nodes)
        raise Impossible(self.shortage(state, ask, wanted))

    def groups(self, ask: Ask) -> Iterator[tuple[int, ...]]:
        """Small ones first."""
        nodes = sorted(self.nodes)
        most = 1 if ask.role.memory.numa == "single" else len(nodes)
        return (each for size in range(1, most + 1) for each in combinations(nodes, size))

    def suits(
        self, state: MemoryState, ask: Ask, nodes: tuple[int, ...], wanted: Mapping[str, int]
    ) -> bool:
        if self.barred(state, ask).keys() & set(nodes):
            return False
        mixed = any(
            each.nodes & set(nodes) and each.nodes != CpuSet(nodes)
            for each in state.holdings
            if not each.is_for(ask)
        )
        return not mixed and all(
            sum(self.free(state, ask, resource, node) for node in nodes) >= amount
            for resource, amount in wanted.items()
        )

    def free(self, state: MemoryState, ask: Ask | None, resource: str, node: int) -> int:
        """For this container; what its pod's init containers had can be had again."""
        others = [each for each in state.holdings if not (ask and each.is_for(ask))]
        used = 0
        for pod in {each.pod for each in others}:
            init, rest = _used(others, pod, resource, node)
            used += rest if ask and pod == ask.pod else max(init, rest)
        return self.allocatable[resource].get(node, 0) - used

    def drained(
        self, state: MemoryState, ask: Ask, resource: str, nodes: Iterable[int], amount: int
    ) -> ByNode:
        """Node by node: the next is used when the one before has nothing left."""
        given = {}
        for node in nodes:
            part = min(amount, max(0, self.free(state, ask, resource, node)))
            if part:
                given[node] = part
            amount -= part
        return given

    def fewest_nodes(self, wanted: Mapping[str, int]) -> int:
        """How many nodes it would take if nothing were in use."""
        nodes = sorted(self.nodes)
        for size in range(1, len(nodes) + 1):
            for each in combinations(nodes, size):
                if all(
                    sum(self.allocatable[name].get(node, 0) for node in each) >= amount
                    for name, amount in wanted.items()
                ):
                    return size
        return len(nodes)

    def barred(self, state: MemoryState, ask: Ask) -> dict[int, str]:
        neighbours = (
            Neighbour(pod=each.pod, shown=each.shown, role=each.role, nodes=each.nodes)
            for each in state.holdings
        )
        return barred(ask.role, ask.pod, neighbours, self.book.roles)

    def shortage(self, state: MemoryState, ask: Ask, wanted: Mapping[str, int]) -> str:
        """Which nodes are short, or why they are not for it."""
        reasons = self.barred(state, ask)
        groups = {
            node: each.nodes
            for each in state.holdings
            for node in each.nodes
            if not each.is_for(ask) and len(each.nodes) > 1
        }
        told = []
        for node in sorted(self.nodes):
            free = ", ".join(
                f"{shown_bytes(self.free(state, ask, name, node))} of {name} free"
                for name in wanted
            )
            group = f", in a group with nodes {groups[node]}" if node in groups else ""
            told.append(f"node {node}: {reasons.get(node) or free}{group}")
        amounts = ", ".join(f"{shown_bytes(each)} of {name}" for name, each in wanted.items())
        return f"{ask.shown} wants {amounts} (role {ask.role.name}); {'; '.join(told)}"


def allocatable(machine: Machine, book: Book) -> dict[str, dict[int, int]]:
    """Bytes by resource and node: huge pages are no ordinary memory any more."""
    found: dict[str, dict[int, int]] = {MEMORY: {}}
    for node in machine.nodes:
        huge = {
            f"hugepages-{shown_bytes(size)}": size * each.total
            for size, each in node.hugepages.items()
        }
        for name, amount in sorted(huge.items()):
            found.setdefault(name, {})[node.id] = amount
        reserved = book.reserved.memory.get(node.id, 0)
        if node.memory:
            found[MEMORY][node.id] = max(0, node.memory - reserved - sum(huge.values()))
    return found


def _used(holdings: Iterable[MemoryHolding], pod: str, resource: str, node: int) -> tuple[int, int]:
    """By the pod's init containers, of which one runs at a time, and by the others together."""
    init, rest = 0, 0
    for each in holdings:
        amount = each.given.get(resource, {}).get(node, 0) if each.pod == pod else 0
        if each.init:
            init = max(init, amount)
        else:
            rest += amount
    return init, rest
