"""Who has which CPUs, and every decision about it: a state in, a new state out. Pure.

A container has CPUs of its own, or shares those of a pool. Its own are taken out of a pool, which
has them back when the pod goes. Every CPU is in one pool, but for those that are reserved and those
that the kernel isolates (who shares these is not balanced over them): they are in a pool only if
the file lists them there.

What containers have outlives changes of the file and of the machine. CPUs that went offline stay
theirs, and nobody uses them meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.holdings import (
    PluginState,
    ResourceDecisions,
    ResourceHolding,
    owner_of,
)
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.common.roles import SHARED, RoleBook
from dovetail.node.plugins.cpu import assign
from dovetail.node.plugins.cpu.assign import CpuPolicyOption
from dovetail.node.plugins.cpu.pools import divide
from dovetail.node.topology import Machine


class CpuHolding(ResourceHolding, frozen=True, kw_only=True):
    amount: Fraction
    """As asked for."""
    pool: str
    cpus: CpuSet = CpuSet()
    """Its own; none if it shares the pool."""
    strict: bool = False
    """It may not share the reserved CPUs."""


class CpuState(PluginState[CpuHolding], frozen=True, kw_only=True):
    pools: Mapping[str, CpuSet] = {}
    wanted: Mapping[str, int] = {}
    """The sizes that pools should have; they may be on the way there."""
    declared: Mapping[str, int] = {}
    """The sizes in the file of roles when it was last read: if these change, they count."""

    @property
    def held(self) -> CpuSet:
        return union(each.cpus for each in self.holdings)


class Cpus(ResourceDecisions):
    """The decisions about CPUs."""

    def __init__(self, machine: Machine, book: RoleBook, resource: str = "cpu") -> None:
        super().__init__(machine, book, resource)
        self.reserved = book.reserved.cpus
        self.common = machine.online - isolated(machine, book)
        self.allocatable = self.common - self.reserved

    def settled(self, state: CpuState, sizes: Mapping[str, int] | None = None) -> CpuState:
        """The pools as the file and these sizes have them; by default, those wanted."""
        sizes = state.wanted if sizes is None else sizes
        pools = divide(
            self.machine,
            self.book.pools,
            sizes,
            state.pools,
            allocatable=self.allocatable,
            held=state.held,
        )
        return msgspec.structs.replace(state, pools=pools)

    def set_of(self, state: CpuState, holding: CpuHolding) -> CpuSet:
        """The CPUs that a container runs on now: never none, whatever changed since."""
        meant = self.meant_for(state, holding)
        return meant or self.common - state.held or self.common

    def meant_for(self, state: CpuState, holding: CpuHolding) -> CpuSet:
        own = self.own(holding)
        return own or self.shared(state, holding.pool, strict=holding.strict)

    def own(self, holding: CpuHolding) -> CpuSet:
        return holding.cpus & self.machine.online

    def intact(self, holding: CpuHolding) -> bool:
        return holding.cpus <= self.machine.online

    def shared(self, state: CpuState, pool: str, *, strict: bool) -> CpuSet:
        """What the pool's containers share."""
        gone = self.gone(pool)
        cpus = state.pools.get(SHARED if gone else pool, CpuSet()) - state.held
        if gone:
            cpus = cpus or self.allocatable - state.held
        if (gone or pool == SHARED) and not strict:
            cpus |= self.reserved - state.held
        return cpus

    def gone(self, pool: str) -> bool:
        """From the file: who shares it still has what no pool has, or all there is."""
        return pool != SHARED and pool not in self.book.pools

    def exclusive(self, request: PluginRequest) -> int:
        """How many CPUs of its own it is to have.

        Of the containers of a pod together it is not known who asks for a part of a CPU: who does,
        shares.
        """
        amount = request.amounts.get(self.resource, Fraction())
        together = not request.container and not request.pod_level
        whole = amount.denominator == 1 or together
        return int(amount) if request.role.cpu.exclusive and whole else 0

    def allocate(self, state: CpuState, request: PluginRequest) -> CpuState:
        """With the container's holding in it; raises Impossible."""
        count = self.exclusive(request)
        rule = request.role.cpu
        new = CpuHolding(
            **owner_of(request),
            amount=request.amounts.get(self.resource, Fraction()),
            pool=rule.pool,
            strict=CpuPolicyOption.STRICT_CPU_RESERVATION in rule.options,
        )
        before = state.of(request.pod, request.container)
        same = before and (before.amount, before.role) == (new.amount, new.role)
        if before and same and self.intact(before):
            return state
        if count:
            cpus = self.chosen(state, request, count)
            new = msgspec.structs.replace(new, cpus=cpus)
        after = state.with_holding(new)
        self.nobody_without(after, state)
        return after

    def chosen(self, state: CpuState, request: PluginRequest, count: int) -> CpuSet:
        """CPUs for a container of its own. One that has some keeps what it can.

        A preferred hint is binding: hints that have come out of date must not break the policy by
        which they were agreed on.
        """
        free = self.free(state, request)
        if request.nodes is not None and request.preferred:
            near = assign.aligned(self.machine, request.nodes, request.role.cpu.options)
            # Nodes without any CPUs are meant for something else.
            free = free & near if near else free
        self.smt_aligned(request, count)
        before = state.of(request.pod, request.container)
        kept = before.cpus & free if before else CpuSet()
        if len(kept) >= count:
            free, kept = kept, CpuSet()
        elif request.role.cpu.numa == "single":
            free = self.in_one_node(free, kept, request, count)
        try:
            return kept | assign.choose(
                self.machine,
                free - kept,
                count - len(kept),
                request.role.cpu.options,
                request.nodes,
            )
        except assign.NotEnough:
            raise Impossible(self.shortage(state, request, count)) from None

    def in_one_node(self, free: CpuSet, kept: CpuSet, request: PluginRequest, count: int) -> CpuSet:
        """The free CPUs of one node that has enough: of those the agent wants, if it can be."""
        per_node = {
            node: self.usable(free & cpus, request)
            for node, cpus in self.machine.by_numa.items()
            if kept <= cpus
        }
        enough = [node for node, cpus in per_node.items() if len(cpus) >= count]
        wanted = [node for node in enough if request.nodes is None or node in request.nodes]
        fewest = min(wanted or enough, key=lambda node: (len(per_node[node]), node), default=None)
        return CpuSet() if fewest is None else per_node[fewest]

    def usable(self, free: CpuSet, request: PluginRequest) -> CpuSet:
        return assign.usable(self.machine, free, request.role.cpu.options)

    def free(self, state: CpuState, request: PluginRequest) -> CpuSet:
        """What could become its own: nobody's, not reserved, not on a node that is barred."""
        others = (each.cpus for each in state.holdings if not each.is_for(request))
        taken = union(others) - self.reusable(state, request)
        pool = state.pools.get(request.role.cpu.pool, CpuSet())
        barred_cpus = self.machine.in_nodes(self.barred(state, request))
        return pool - self.reserved - taken - barred_cpus

    def reusable(self, state: CpuState, request: PluginRequest) -> CpuSet:
        """CPUs of the pod's init containers, which will be over, unless another has them again."""
        of_pod = [each for each in state.holdings if each.pod == request.pod]
        init = union(each.cpus for each in of_pod if each.init)
        others = (
            each.cpus for each in of_pod if not each.init and each.container != request.container
        )
        return init - union(others)

    def barred(self, state: CpuState, request: PluginRequest) -> dict[int, str]:
        nodes = ((each, self.machine.nodes_of(self.own(each))) for each in state.holdings)
        return self.barred_nodes(request, nodes)

    def nobody_without(self, state: CpuState, before: CpuState) -> None:
        """Containers that share must be left something to run on, and pools their least.

        Who had too little before, because the file or the machine changed, is not in the way of
        others: raises Impossible only if something becomes worse.
        """
        for name, pool in self.book.pools.items():
            left, had = (
                len(each.pools.get(name, CpuSet()) - each.held) for each in (state, before)
            )
            if left < min(pool.min, len(state.pools[name])) and left < had:
                raise Impossible(f"pool {name} would be left {left} CPUs; min is {pool.min}")
        lacking = {each.key for each in self.lacking(before)}
        for each in self.lacking(state):
            if each.key not in lacking:
                raise Impossible(
                    f"no CPU would be left for {each.shown}, container {each.container}, "
                    f"which shares pool {each.pool}"
                )

    def lacking(self, state: CpuState) -> list[CpuHolding]:
        """Containers for whom nothing is left where they belong."""
        return [each for each in state.holdings if not self.meant_for(state, each)]

    def smt_aligned(self, request: PluginRequest, count: int) -> None:
        threads = self.machine.threads_per_core
        option, role = CpuPolicyOption.FULL_PCPUS_ONLY, request.role
        if option in role.cpu.options and count % threads:
            raise Impossible(
                f"role {role.name} gives whole cores only ({option}): "
                f"{count} CPUs are no multiple of {threads} threads"
            )

    def shortage(self, state: CpuState, request: PluginRequest, count: int) -> str:
        """Which nodes are short, and by how much."""
        reasons = self.barred(state, request)
        free = self.usable(self.free(state, request), request)
        nodes = "; ".join(
            f"node {node}: {reasons.get(node) or f'{len(cpus & free)} free'}"
            for node, cpus in self.machine.by_numa.items()
        )
        where = " on one NUMA node" if request.role.cpu.numa == "single" else ""
        agreed = "" if request.nodes is None else f"agreed on is NUMA node {request.nodes}; "
        return (
            f"{request.shown} wants {count} CPUs of its own{where} (role {request.role.name}); "
            f"{agreed}{len(free)} are free in pool {request.role.cpu.pool}: {nodes}"
        )


def isolated(machine: Machine, book: RoleBook) -> CpuSet:
    """By the kernel, and in no pool."""
    return machine.isolated - union(pool.cpus or CpuSet() for pool in book.pools.values())


def union(sets: Iterable[CpuSet]) -> CpuSet:
    return CpuSet(cpu for each in sets for cpu in each)
