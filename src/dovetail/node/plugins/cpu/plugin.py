"""The CPU plugin: pools that containers share, and CPUs of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import structlog

from dovetail.node.hints.hint import Hints, listed
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.plugins.common.serving import RolePlugin, allocatable_resource
from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.plugins.cpu import hints as cpu_hints
from dovetail.node.plugins.cpu.pools import moves
from dovetail.node.plugins.cpu.sizes import next_sizes, remembered
from dovetail.node.plugins.cpu.state import CpuHolding, Cpus, CpuState
from dovetail.node.topology import Machine
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ResourceAllocationInfo,
)

LOG = structlog.get_logger("dovetail.node.plugins.cpu")


class CpuPlugin(RolePlugin[CpuHolding]):
    state: CpuState

    def __init__(
        self, machine: Machine, book: RoleBook, store: PluginStore, *, resource: str = "cpu"
    ) -> None:
        """Raises StateNotSaved if the state cannot be written."""
        super().__init__(resource, machine, book, store)
        self.cpus = Cpus(machine, book, resource)
        self.state = store.load(CpuState) or CpuState()
        self.reported: frozenset[str] = frozenset()
        """Troubles that are logged already."""
        self.settle(remembered(self.cpus, self.state), at_once=True)

    def adopt(self, book: RoleBook) -> None:
        before = self.book, self.cpus
        self.book, self.cpus = book, Cpus(self.machine, book, self.resource)
        try:
            self.settle(remembered(self.cpus, self.state))
        except StateNotSaved:
            self.book, self.cpus = before
            raise

    def want(self, sizes: Mapping[str, int]) -> None:
        """Have pools of these sizes, by and by if they have a ramp."""
        wanted = {**self.state.wanted, **sizes}
        self.settle(msgspec.structs.replace(self.state, wanted=wanted))

    def step(self) -> None:
        """Go on towards the sizes that are wanted."""
        self.settle(self.state)

    def settle(self, state: CpuState, *, at_once: bool = False) -> None:
        """Divide the pools anew. Not if that would leave containers nothing to run on."""
        sizes = state.wanted if at_once else next_sizes(self.cpus, state)
        after = self.cpus.settled(state, sizes)
        found = []
        try:
            self.cpus.nobody_without(after, self.state)
        except Impossible as error:
            found.append(f"pools stay as they are: {error}")
            after = self.cpus.settled(
                state, {name: len(self.state.pools.get(name, ())) for name in sizes}
            )
        moved = moves(self.state.pools, after.pools)
        self.keep(after)
        for move in moved:
            LOG.info("moved", giver=move.giver, receiver=move.receiver, cpus=str(move.cpus))
        self.report(frozenset([*found, *troubles(self.cpus, after)]))

    def report(self, found: frozenset[str]) -> None:
        """Each trouble once, although it is looked at every second."""
        for words in sorted(found - self.reported):
            LOG.warning("trouble", reason=words)
        self.reported = found

    def hints(self, request: PluginRequest) -> Hints:
        return cpu_hints.hints(self.cpus, self.state, request)

    def state_with(self, request: PluginRequest) -> CpuState:
        return self.cpus.allocate(self.state, request)

    def info(self, holding: CpuHolding) -> ResourceAllocationInfo:
        cpus = self.cpus.set_of(self.state, holding)
        own = self.cpus.own(holding)
        hints = (cpu_hints.hint_of(self.cpus, holding),) if own else None
        return ResourceAllocationInfo(
            oci_property_name="CpusetCpus",
            is_scalar_resource=True,
            allocated_quantity=float(len(cpus)),
            allocation_result=str(cpus),
            resource_hints=listed(hints),
        )

    def by_node(self, holding: CpuHolding) -> Mapping[str, Mapping[int, float]]:
        return {self.resource: self.counted(self.cpus.set_of(self.state, holding))}

    def allocatable(self) -> Mapping[str, AllocatableTopologyAwareResource]:
        allocatable = self.counted(self.cpus.allocatable)
        return {self.resource: allocatable_resource(allocatable, self.counted(self.machine.online))}

    def counted(self, cpus: frozenset[int]) -> dict[int, float]:
        counts = {node: len(there & cpus) for node, there in self.machine.by_numa.items()}
        return {node: float(count) for node, count in counts.items() if count}


def troubles(cpus: Cpus, state: CpuState) -> Iterator[str]:
    """What the file or the machine became and running containers cannot follow."""
    for each in state.holdings:
        who = each.holder
        if missing := each.cpus - cpus.machine.online:
            yield f"{who} has CPUs {each.cpus}, of which {missing} are not online"
        if reserved := each.cpus & cpus.reserved:
            yield f"{who} has CPUs {reserved} until it ends, which are reserved now"
        if not each.cpus and cpus.gone(each.pool):
            yield (
                f"{who} shares pool {each.pool}, which is gone: "
                f"it runs on {cpus.set_of(state, each)}"
            )
    for each in cpus.lacking(state):
        yield (
            f"{each.holder} shares pool {each.pool}, in which "
            f"no CPU is left: it runs on {cpus.set_of(state, each)}"
        )
