"""The memory plugin: the NUMA nodes that containers are bound to, and how much is left there."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import structlog

from dovetail.node.hints.hint import Hints, listed
from dovetail.node.plugins.common.requests import PluginRequest
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.plugins.common.serving import RolePlugin, allocatable_resource
from dovetail.node.plugins.common.store import PluginStore
from dovetail.node.plugins.memory.state import (
    MEMORY,
    PAGES,
    Memory,
    MemoryHolding,
    MemoryState,
    page_size,
)
from dovetail.node.topology import Machine
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ResourceAllocationInfo,
)

LOG = structlog.get_logger("dovetail.node.plugins.memory")


UNITS = (("GB", 2**30), ("MB", 2**20), ("KB", 2**10))
"""Of page sizes, as the kernel's cgroups write them."""


def pinned_nodes(holding: MemoryHolding) -> set[int]:
    return {node for nodes in holding.pinned.values() for node in nodes}


def limit_of(resource: str, amount: int) -> str:
    """A limit of bytes, by the page size of `hugepages-2Mi`, as containers have it."""
    size = page_size(resource)
    assert size
    name, unit = next(each for each in UNITS if not size % each[1])
    return json.dumps({f"{size // unit}{name}": amount})


class MemoryPlugin(RolePlugin[MemoryHolding]):
    state: MemoryState

    def __init__(
        self, machine: Machine, book: RoleBook, store: PluginStore, *, resource: str = MEMORY
    ) -> None:
        super().__init__(resource, machine, book, store)
        self.memory = Memory(machine, book, resource)
        if resource == MEMORY:
            # An agent that knows of these asks for both at once: they are to be on the same nodes.
            pages = tuple(name for name in self.memory.allocatable if name.startswith(PAGES))
            self.options = msgspec.structs.replace(self.options, extra_resources=pages)
        self.state = store.load(MemoryState) or MemoryState()
        for each in self.state.holdings:
            if not self.memory.intact(each):
                LOG.warning(
                    "trouble",
                    reason=f"{each.shown}, container {each.container}, is bound to NUMA nodes "
                    f"{each.nodes}, of which {each.nodes - self.memory.nodes} are not there",
                )

    def adopt(self, book: RoleBook) -> None:
        self.book, self.memory = book, Memory(self.machine, book, self.resource)

    def hints(self, request: PluginRequest) -> Hints:
        return self.memory.hints(self.state, request)

    def state_with(self, request: PluginRequest) -> MemoryState:
        return self.memory.allocate(self.state, request)

    def info(self, holding: MemoryHolding) -> ResourceAllocationInfo:
        """The quantity is that of NUMA nodes, as in the specification; the bytes are by node."""
        own = self.memory.own(holding)
        nodes = own or self.memory.nodes
        hints = (self.memory.hint_of(holding),) if own else None
        return ResourceAllocationInfo(
            oci_property_name="CpusetMems",
            is_scalar_resource=True,
            allocated_quantity=float(len(nodes)),
            allocation_result=str(nodes),
            resource_hints=listed(hints),
            topology_assignments=dict(holding.given.get(self.resource, {})),
            device_ids=tuple(f"numa{node}" for node in sorted(pinned_nodes(holding))),
        )

    def infos(self, holding: MemoryHolding) -> Mapping[str, ResourceAllocationInfo]:
        """With the right to use the pages that a resource class gave."""
        return {self.resource: self.info(holding)} | {
            name: ResourceAllocationInfo(
                oci_property_name="HugepageLimits",
                is_scalar_resource=True,
                allocated_quantity=float(sum(holding.given[name].values())),
                allocation_result=limit_of(name, sum(holding.given[name].values())),
                topology_assignments=dict(holding.given[name]),
            )
            for name in sorted(holding.pinned)
        }

    def by_node(self, holding: MemoryHolding) -> Mapping[str, Mapping[int, float]]:
        """Huge pages, too, if it was asked for them together."""
        return {self.resource: {}} | {
            name: {node: float(each) for node, each in amounts.items()}
            for name, amounts in holding.given.items()
        }

    def allocatable(self) -> Mapping[str, AllocatableTopologyAwareResource]:
        capacity = {node.id: float(node.memory) for node in self.machine.nodes if node.memory}
        return {
            name: allocatable_resource(amounts, capacity if name == MEMORY else amounts)
            for name, amounts in self.memory.allocatable.items()
        }
