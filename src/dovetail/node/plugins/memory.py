"""The memory plugin: the NUMA nodes that containers are bound to, and how much is left there."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.node.hints.hint import Hints, listed
from dovetail.node.plugins.asks import Ask
from dovetail.node.plugins.memory_state import MEMORY, Memory, MemoryHolding, MemoryState
from dovetail.node.plugins.roles import Book
from dovetail.node.plugins.serving import RolePlugin, allocatable_resource
from dovetail.node.plugins.store import Store
from dovetail.node.topology import Machine
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ResourceAllocationInfo,
)


class MemoryPlugin(RolePlugin[MemoryHolding]):
    state: MemoryState

    def __init__(
        self, machine: Machine, book: Book, store: Store, *, resource: str = MEMORY
    ) -> None:
        super().__init__(resource, machine, book, store)
        self.memory = Memory(machine, book, resource)
        self.state = store.load(MemoryState) or MemoryState()
        missing = {node for each in self.state.holdings for node in each.nodes} - machine.node_ids
        if missing:
            store.set_aside(f"containers are bound to NUMA nodes {missing}, which are not there")
            self.state = MemoryState()

    def adopt(self, book: Book) -> None:
        self.book, self.memory = book, Memory(self.machine, book, self.resource)

    def hints(self, ask: Ask) -> Hints:
        return self.memory.hints(self.state, ask)

    def decided(self, ask: Ask) -> MemoryState:
        return self.memory.allocate(self.state, ask)

    def info(self, holding: MemoryHolding) -> ResourceAllocationInfo:
        """The quantity is that of NUMA nodes, as in the specification; the bytes are by node."""
        nodes = holding.nodes or self.memory.nodes
        hints = (self.memory.hint_of(holding),) if holding.nodes else None
        return ResourceAllocationInfo(
            oci_property_name="CpusetMems",
            is_scalar_resource=True,
            allocated_quantity=float(len(nodes)),
            allocation_result=str(nodes),
            resource_hints=listed(hints),
            topology_assignments=dict(holding.given.get(self.resource, {})),
        )

    def by_node(self, holding: MemoryHolding) -> Mapping[int, float]:
        return {node: float(each) for node, each in holding.given.get(self.resource, {}).items()}

    def allocatable(self) -> Mapping[str, AllocatableTopologyAwareResource]:
        capacity = {node.id: float(node.memory) for node in self.machine.nodes if node.memory}
        return {
            name: allocatable_resource(amounts, capacity if name == MEMORY else amounts)
            for name, amounts in self.memory.allocatable.items()
        }
